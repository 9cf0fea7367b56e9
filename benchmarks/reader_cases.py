"""Questions with retrieved evidence, read from a workspace, for the scripts that fit and examine readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Layout
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.stages.storage import read_episode, read_evidence, read_manifest
from mesa_pipeline.types import ComposedEvidence, Evidence, Question, Trajectory


@dataclass(frozen=True)
class Case:
    """A question with its trajectory and each structure's evidence."""

    dataset: str
    domain: str
    trajectory: Trajectory
    question: Question
    evidence: dict[str, Evidence]

    def compose(self, mask: int) -> ComposedEvidence:
        return Composer(self.evidence, CharacterCounter()).compose(mask)


class CharacterCounter:
    """Stands in for a tokenizer where token counts are not looked at."""

    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


class Halves(NamedTuple):
    """Cases of every other episode, and of the rest: weights are fitted on the first and verified on the second."""

    first: list[Case]
    second: list[Case]


def read_halves(workspace: Path, dataset: str) -> Halves:
    """All cases of a dataset whose evidence is in the workspace (made by ``mesa sweep``)."""
    layout = Layout(workspace, dataset)
    halves = Halves([], [])
    for number, entry in enumerate(read_manifest(layout).episodes):
        episode = read_episode(layout, entry.key)
        found = {
            code: read_evidence(layout, code, subsets.STRUCTURE_NAMES[code], entry.key) for code in subsets.STRUCTURE_CODES
        }
        halves[number % 2].extend(
            Case(dataset, episode.domain, episode.trajectory, question, {code: found[code][question.id] for code in found})
            for question in episode.questions
        )
    return halves


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
