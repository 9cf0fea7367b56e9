"""Our own data: simulated agents in simulated environments, with gold answers computed from the simulated state.

It needs no download, so it is the demo, the test and the scaling data. See ``docs/synthetic.md``.
"""

from pathlib import Path

from mesa_pipeline.config import DatasetsSettings
from mesa_pipeline.datasets.rows import LoadedEpisodes
from mesa_pipeline.datasets.synthetic.generate import DesignedEpisode, design_episode
from mesa_pipeline.datasets.synthetic.questions.mix import KINDS


def load(path: Path | None, settings: DatasetsSettings, skip_invalid: bool) -> LoadedEpisodes:
    """Generate the episodes the settings ask for.

    Args:
        path: Unused: the data is made, not read.
        settings: ``synthetic`` gives seed, number of episodes, mean length and questions per episode.
        skip_invalid: Unused: no generated episode is invalid.
    """
    numbers = range(settings.synthetic.episodes)
    return LoadedEpisodes(tuple(design_episode(settings.synthetic, number).episode for number in numbers))


__all__ = ["KINDS", "DesignedEpisode", "design_episode", "load"]
