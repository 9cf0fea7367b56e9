"""Making episodes: simulate, then ask."""

from dataclasses import dataclass
from itertools import islice
from random import Random

from mesa_pipeline.config import SyntheticSettings
from mesa_pipeline.datasets.synthetic.environments import ENVIRONMENTS
from mesa_pipeline.datasets.synthetic.history import History
from mesa_pipeline.datasets.synthetic.questions.mix import DesignedQuestion, choose_questions
from mesa_pipeline.types import Episode, Question, Trajectory

DATASET = "synthetic"
MIN_STEPS = 10
SHORTEST, LONGEST = 0.5, 1.5  # of the mean length


@dataclass(frozen=True, slots=True)
class DesignedEpisode:
    """An episode together with what its questions were designed for and the simulated state behind them."""

    episode: Episode
    history: History
    designed: tuple[DesignedQuestion, ...]


def design_episode(settings: SyntheticSettings, number: int) -> DesignedEpisode:
    """Make episode ``number``; it depends on the seed, its number, the length and the question count, and on nothing else."""
    environment = ENVIRONMENTS[number % len(ENVIRONMENTS)]
    task_type = environment.task_types[number // len(ENVIRONMENTS) % len(environment.task_types)]
    simulation_rng = Random(f"{settings.seed}/{number}/simulation")
    length = max(MIN_STEPS, round(settings.steps * simulation_rng.uniform(SHORTEST, LONGEST)))
    world = environment.create(simulation_rng, task_type)
    history = History.of(islice(world.play(), length))
    designed = choose_questions(history, environment.wording, settings.questions, Random(f"{settings.seed}/{number}/questions"))
    identifier = f"{DATASET}-{number:04d}"
    episode = Episode(
        id=identifier,
        dataset=DATASET,
        domain=environment.domain,
        task_type=task_type,
        trajectory=Trajectory(identifier, world.task, history.steps),
        questions=tuple(_question(f"{identifier}#{place}", question) for place, question in enumerate(designed)),
    )
    return DesignedEpisode(episode, history, tuple(designed))


def _question(identifier: str, designed: DesignedQuestion) -> Question:
    draft = designed.draft
    return Question(identifier, draft.text, designed.kind.qa_type, draft.answer, draft.steps)
