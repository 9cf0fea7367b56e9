"""Reading the outcome table: the episodes asked for and no others, so that a search never opens test outcomes."""

from collections.abc import Iterable
from dataclasses import dataclass

from mesa_pipeline.artifacts import read_header
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo, to_matrix
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import EpisodeEntry, question_infos, read_manifest, read_outcomes
from mesa_pipeline.stages.sweep import outcomes_fingerprint
from mesa_pipeline.types import Outcome


@dataclass(frozen=True)
class Table:
    """Outcomes of some episodes.

    Attributes:
        matrix: Of the questions that have outcomes.
        fingerprints: Keys of the outcome files read, by episode id: what a result made from the table depends on.
        unswept: Ids of questions without any outcome: their sweep failed.
    """

    matrix: OutcomeMatrix
    fingerprints: dict[str, str]
    unswept: tuple[str, ...]


def read_table(context: StageContext, episode_ids: Iterable[str]) -> Table:
    """Read the outcomes of some episodes.

    Raises:
        ArtifactError: An episode has not been swept, or with other evidence, reader or questions than there are now.
    """
    entries = read_manifest(context.layout).entries(episode_ids)
    infos: list[QuestionInfo] = []
    outcomes: list[Outcome] = []
    for entry in entries:
        _require_current(context, entry)
        infos += question_infos(context.layout, entry)
        outcomes += read_outcomes(context.layout, entry.key)
    swept = {outcome.question_id for outcome in outcomes}
    matrix = to_matrix([info for info in infos if info.id in swept], outcomes)
    keys = {entry.id: outcomes_fingerprint(context, entry) for entry in entries}
    return Table(matrix, keys, tuple(info.id for info in infos if info.id not in swept))


def _require_current(context: StageContext, entry: EpisodeEntry) -> None:
    header = read_header(context.layout.outcomes(entry.key)) or {}
    expected = outcomes_fingerprint(context, entry)
    if header.get("fingerprint") not in (expected, f"incomplete:{expected}"):
        raise ArtifactError(f"the outcomes of episode {entry.id!r} are missing or outdated; run `mesa sweep`")
