"""MESA and the systems it is compared with on the same held-out questions (paper, Tables 1, 2, 4, 5 and 7).

All are set side by side as plain arrays, one for each split seed, so that one arithmetic serves every table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import random_outcomes
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, TestResult
from mesa_pipeline.evaluation.systems import SystemOutcome
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo

SystemKind = Literal["baseline", "structure", "selection", "mesa"]
"""A system of others; one of MESA's structures read alone; another way to select structures; MESA's frozen policy."""
SELECTION_ROWS = {"random": "Random subset", "all": "All five structures", "oracle": "Oracle subset (hindsight)"}


@dataclass(frozen=True)
class Asked:
    """What one system made of the n test questions of one split seed.

    Attributes:
        scores: Shape ``(n,)``, in [0, 1]; NaN where unscored.
        tokens: Shape ``(n,)``, evidence tokens; NaN where it was not asked.
        prompt_tokens: Shape ``(n,)``, read by language models while evidence was sought, not by the reader; NaN where unknown.
        calls: Shape ``(n,)``, replies of those models; NaN where unknown.
    """

    scores: np.ndarray
    tokens: np.ndarray
    prompt_tokens: np.ndarray
    calls: np.ndarray


@dataclass(frozen=True)
class ComparedSystem:
    """One system on the test questions of every seed, in the order of ``Comparison.held_out``."""

    code: str
    title: str
    kind: SystemKind
    seeds: tuple[Asked, ...]


@dataclass(frozen=True)
class HeldOut:
    """The test questions of one split seed, in the order of their ids."""

    seed: int
    questions: tuple[QuestionInfo, ...]


@dataclass(frozen=True)
class Comparison:
    """All systems on the same questions; MESA's frozen policy is the last of them."""

    held_out: tuple[HeldOut, ...]
    systems: tuple[ComparedSystem, ...]

    @property
    def mesa(self) -> ComparedSystem:
        return self.systems[-1]

    def only(self, seeds: Sequence[int]) -> "Comparison":
        """The same systems on some of the split seeds."""
        kept = [place for place, part in enumerate(self.held_out) if part.seed in seeds]
        systems = tuple(
            ComparedSystem(system.code, system.title, system.kind, tuple(system.seeds[place] for place in kept))
            for system in self.systems
        )
        return Comparison(tuple(self.held_out[place] for place in kept), systems)

    def among(self, codes: Sequence[str]) -> "Comparison":
        """Some of the systems, and MESA."""
        return Comparison(self.held_out, tuple(found for found in self.systems if found.code in (*codes, self.mesa.code)))


@dataclass(frozen=True)
class Answers:
    """The outcomes of one baseline, by question id."""

    code: str
    title: str
    outcomes: Mapping[str, SystemOutcome]


@dataclass(frozen=True)
class Retrieval:
    """What retrieving from each structure asked of language models, for each question of a matrix.

    Attributes:
        prompt_tokens: Shape ``(n, 5)``, in the order of ``STRUCTURE_CODES``; NaN where unknown.
        calls: Shape ``(n, 5)``.
    """

    prompt_tokens: np.ndarray
    calls: np.ndarray

    @classmethod
    def without_models(cls, questions: int) -> "Retrieval":
        """Where no structure asks one."""
        return cls(np.zeros((questions, len(subsets.STRUCTURE_CODES))), np.zeros((questions, len(subsets.STRUCTURE_CODES))))


def compare_systems(
    tests: Sequence[TestResult], matrix: OutcomeMatrix, baselines: Sequence[Answers], retrieval: Retrieval | None = None
) -> Comparison:
    """Set the baselines, MESA's structures alone, other selections of them and the frozen policies side by side.

    Args:
        tests: The held-out test of each seed; at least one.
        matrix: Outcomes of every question tested.
        baselines: Outcomes of the systems that were run, in the order of the tables.
        retrieval: What retrieving for the questions of ``matrix`` asked of models; ``None`` where no structure asks one.

    Raises:
        ArtifactError: There is no test, or ``matrix`` lacks a question that was tested.
    """
    if not tests:
        raise ArtifactError("no policy has been tested, so there is nothing to compare with; run `mesa run` or `mesa test`")
    table = _Table(matrix, retrieval or Retrieval.without_models(len(matrix)))
    ordered = sorted(tests, key=lambda test: test.seed)
    places = [table.places(test) for test in ordered]
    held_out = tuple(
        HeldOut(test.seed, tuple(matrix.questions[row] for row in where)) for test, where in zip(ordered, places, strict=True)
    )
    systems = [
        ComparedSystem(found.code, found.title, "baseline", tuple(_asked(found.outcomes, part.questions) for part in held_out))
        for found in baselines
    ]
    systems += [_selected(table, name, ordered, places) for name in (*subsets.STRUCTURE_CODES, *SELECTION_ROWS, FROZEN_ROW)]
    return Comparison(held_out, tuple(system for system in systems if system.seeds))


class _Table:
    """The outcome table with what each cell took, read by rows."""

    def __init__(self, matrix: OutcomeMatrix, retrieval: Retrieval) -> None:
        self.matrix = matrix
        members = np.array([[code in subsets.decode(mask) for code in subsets.STRUCTURE_CODES] for mask in subsets.ALL_SUBSETS])
        self._prompt_tokens = _over_subsets(retrieval.prompt_tokens, members)
        self._calls = _over_subsets(retrieval.calls, members)
        self._rows = {question.id: row for row, question in enumerate(matrix.questions)}

    def places(self, test: TestResult) -> np.ndarray:
        """Rows of a test's questions, by rising id."""
        lacking = sum(id not in self._rows for id in test.choices)
        if lacking:
            raise ArtifactError(f"{lacking} tested questions are not in the outcome table; run `mesa sweep` again")
        return np.array([self._rows[id] for id in sorted(test.choices)], dtype=np.int64)

    def chosen(self, where: np.ndarray, masks: np.ndarray) -> Asked:
        cell = (where, masks - 1)
        return Asked(self.matrix.scores[cell], self.matrix.tokens[cell], self._prompt_tokens[cell], self._calls[cell])

    def at_random(self, where: np.ndarray) -> Asked:
        """The exact expectation of reading one of the subsets at random."""
        keep = np.zeros(len(self.matrix), dtype=bool)
        keep[where] = True
        found = random_outcomes(self.matrix.select(keep))
        order = np.searchsorted(np.flatnonzero(keep), where)
        means = self._prompt_tokens[where].mean(axis=1), self._calls[where].mean(axis=1)
        return Asked(found.scores[order], found.tokens[order], *means)


def _over_subsets(costs: np.ndarray, members: np.ndarray) -> np.ndarray:
    """What each subset took, shape ``(n, 31)``: unknown where that of one of its structures is."""
    sums: np.ndarray = np.nan_to_num(costs) @ members.T
    return np.where(np.isnan(costs).astype(float) @ members.T > 0, np.nan, sums)


def _selected(table: _Table, row: str, tests: Sequence[TestResult], places: Sequence[np.ndarray]) -> ComparedSystem:
    """A row of the tests; without seeds where one of them did not keep what that row chose."""
    asked: list[Asked] = []
    for test, where in zip(tests, places, strict=True):
        if row == "random":
            asked.append(table.at_random(where))
            continue
        chosen = [test.choices[id] for id in sorted(test.choices)] if row == FROZEN_ROW else test.others.get(row, ())
        if len(chosen) == len(where):
            asked.append(table.chosen(where, np.array(chosen, dtype=np.int64)))
    whole = tuple(asked) if len(asked) == len(tests) else ()
    if row == FROZEN_ROW:
        return ComparedSystem(row, "MESA", "mesa", whole)
    if row in SELECTION_ROWS:
        return ComparedSystem(row, SELECTION_ROWS[row], "selection", whole)
    return ComparedSystem(row, f"{row} {subsets.STRUCTURE_NAMES[row]} alone", "structure", whole)


def _asked(outcomes: Mapping[str, SystemOutcome], questions: Sequence[QuestionInfo]) -> Asked:
    found = [outcomes.get(question.id) for question in questions]
    return Asked(
        scores=np.array([np.nan if o is None or o.score is None else o.score for o in found], dtype=float),
        tokens=np.array([np.nan if o is None else o.tokens for o in found], dtype=float),
        prompt_tokens=np.array([np.nan if o is None else o.cost.prompt_tokens for o in found], dtype=float),
        calls=np.array([np.nan if o is None else o.cost.calls for o in found], dtype=float),
    )
