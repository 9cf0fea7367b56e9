"""Several judges on the same answers: how each scores, how far they agree, and what most of them say (paper, Table 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np

from mesa_pipeline.evaluation.statistics import MeanStd, mean_and_sample_std

MAJORITY = "majority"


@dataclass(frozen=True)
class Panel:
    """What each judge made of each answer.

    Attributes:
        judges: Names of the j judges.
        systems: Whose answer each of the n answers is, shape ``(n,)``, such as ``frozen policy`` or ``all``.
        scores: Shape ``(j, n)``, in [0, 1]; NaN where a judge gave no verdict.
        questions: Id of the question that each answers, shape ``(n,)``.
        episodes: Episode of each of these, shape ``(n,)``.
    """

    judges: tuple[str, ...]
    systems: np.ndarray
    scores: np.ndarray
    questions: np.ndarray
    episodes: np.ndarray


class JudgedAnswer(NamedTuple):
    """Whose answer was judged, and to what."""

    system: str
    question: str
    episode: str


class Voice(NamedTuple):
    """A judge, or the majority of them, and its verdicts, shape ``(n,)``; NaN where it gave none."""

    judge: str
    scores: np.ndarray


@dataclass(frozen=True)
class JudgeRow:
    """One judge on one system.

    Attributes:
        judge: Its name, or ``majority``.
        system: Whose answers.
        accuracy: Mean score over the answers with a verdict; ``None`` where there is none.
        judged: Number of answers with a verdict.
        unjudged: Number without.
    """

    judge: str
    system: str
    accuracy: float | None
    judged: int
    unjudged: int


@dataclass(frozen=True)
class Agreement:
    """Two judges on the answers both gave a verdict on.

    Attributes:
        first: Name of one.
        second: Name of the other.
        answers: Number of those answers.
        agreement: Share of equal verdicts; ``None`` without answers.
        kappa: Cohen's kappa, agreement beyond chance; ``None`` where chance alone would agree.
    """

    first: str
    second: str
    answers: int
    agreement: float | None
    kappa: float | None


@dataclass(frozen=True)
class Lead:
    """One judge on the frozen policy's answers less another system's, over the questions with a verdict on both.

    Attributes:
        judge: Its name, or ``majority``.
        system: The other system.
        sums: Sum of the differences of each episode's questions.
        counts: How many questions of each episode those are.
    """

    judge: str
    system: str
    sums: Mapping[str, float]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class JudgedSeed:
    """What the judges made of the test answers of one split seed.

    Attributes:
        seed: The split seed.
        judges: Who is behind each judge's name, in order; the reward itself is one of them.
        manifest_sha256: Of the frozen policy whose answers were judged.
        outcomes_sha256: Of the outcomes that hold the answers.
        rows: Every judge, then the majority, on every system.
        agreements: Every pair of judges.
        answered: Fingerprints of the judged answers of each baseline, by its code.
        leads: Every judge, then the majority, on the frozen policy less every other system.
    """

    seed: int
    judges: Mapping[str, str]
    manifest_sha256: str
    outcomes_sha256: str
    rows: tuple[JudgeRow, ...]
    agreements: tuple[Agreement, ...]
    answered: Mapping[str, str] = field(default_factory=dict)
    leads: tuple[Lead, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``; what it does not know is left out."""
        return cls(
            seed=value["seed"],
            judges=dict(value["judges"]),
            manifest_sha256=value["manifest_sha256"],
            outcomes_sha256=value["outcomes_sha256"],
            rows=tuple(JudgeRow(**row) for row in value["rows"]),
            agreements=tuple(Agreement(**pair) for pair in value["agreements"]),
            answered=dict(value.get("answered", {})),
            leads=tuple(Lead(**lead) for lead in value.get("leads", ())),
        )


@dataclass(frozen=True)
class JudgeStanding:
    """One judge on one system over the seeds.

    Attributes:
        judge: Its name, or ``majority``.
        system: Whose answers.
        accuracy: Over the seeds with a verdict; ``None`` where there is none.
        unjudged: Answers without a verdict, summed over seeds.
    """

    judge: str
    system: str
    accuracy: MeanStd | None
    unjudged: int


@dataclass(frozen=True)
class PairStanding:
    """Two judges over the seeds: answers summed, the rest as mean and deviation; ``None`` where no seed has a value."""

    first: str
    second: str
    answers: int
    agreement: MeanStd | None
    kappa: MeanStd | None


def judge_standings(seeds: Sequence[JudgedSeed]) -> tuple[JudgeStanding, ...]:
    """Every judge on every system, in order of first appearance."""
    found: dict[tuple[str, str], list[JudgeRow]] = {}
    for row in (row for judged in seeds for row in judged.rows):
        found.setdefault((row.judge, row.system), []).append(row)
    return tuple(
        JudgeStanding(*names, _spread([row.accuracy for row in rows]), sum(row.unjudged for row in rows))
        for names, rows in found.items()
    )


def pair_standings(seeds: Sequence[JudgedSeed]) -> tuple[PairStanding, ...]:
    """Every pair of judges, in order of first appearance."""
    found: dict[tuple[str, str], list[Agreement]] = {}
    for pair in (pair for judged in seeds for pair in judged.agreements):
        found.setdefault((pair.first, pair.second), []).append(pair)
    return tuple(
        PairStanding(
            *names,
            sum(pair.answers for pair in pairs),
            _spread([pair.agreement for pair in pairs]),
            _spread([pair.kappa for pair in pairs]),
        )
        for names, pairs in found.items()
    )


def _spread(values: Sequence[float | None]) -> MeanStd | None:
    known = [value for value in values if value is not None]
    return mean_and_sample_std(known) if known else None


def judge_rows(panel: Panel) -> tuple[JudgeRow, ...]:
    """Every judge, then the majority, on every system in the order of first appearance."""
    systems = list(dict.fromkeys(panel.systems.tolist()))
    return tuple(_row(judge, system, scores[panel.systems == system]) for judge, scores in voices(panel) for system in systems)


def voices(panel: Panel) -> list[Voice]:
    """The judges in their order, then their majority."""
    judges = [Voice(judge, scores) for judge, scores in zip(panel.judges, panel.scores, strict=True)]
    return [*judges, Voice(MAJORITY, majority(panel.scores))]


def majority(scores: np.ndarray) -> np.ndarray:
    """What most judges say of each answer: 1 where more than half of those with a verdict say at least 1/2, NaN on a tie.

    Args:
        scores: Shape ``(j, n)``; NaN where a judge gave no verdict.

    Returns:
        Shape ``(n,)``.
    """
    voting = (~np.isnan(scores)).sum(axis=0)
    favour = (np.nan_to_num(scores, nan=0.0) >= 0.5).sum(axis=0)
    decided = np.where(2 * favour > voting, 1.0, 0.0)
    verdict: np.ndarray = np.where((voting == 0) | (2 * favour == voting), np.nan, decided)
    return verdict


def agreements(panel: Panel) -> tuple[Agreement, ...]:
    """Every pair of judges, over the answers of all systems."""
    pairs = combinations(range(len(panel.judges)), 2)
    return tuple(_agreement(panel, first, second) for first, second in pairs)


def _agreement(panel: Panel, first: int, second: int) -> Agreement:
    both = ~np.isnan(panel.scores[[first, second]]).any(axis=0)
    one, other = panel.scores[first, both] >= 0.5, panel.scores[second, both] >= 0.5
    names = (panel.judges[first], panel.judges[second])
    if not len(one):
        return Agreement(*names, 0, None, None)
    observed = float((one == other).mean())
    chance = float(one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean()))
    return Agreement(*names, len(one), observed, (observed - chance) / (1 - chance) if chance < 1 else None)


def _row(judge: str, system: str, scores: np.ndarray) -> JudgeRow:
    judged = scores[~np.isnan(scores)]
    return JudgeRow(judge, system, float(judged.mean()) if len(judged) else None, len(judged), len(scores) - len(judged))


def panel_of(judges: Sequence[str], answers: Sequence[JudgedAnswer], scores: Sequence[Sequence[float | None]]) -> Panel:
    """A panel from plain lists, ``None`` where a judge gave no verdict."""
    values = np.array([[np.nan if score is None else score for score in row] for row in scores], dtype=float)
    named = np.array([tuple(answer) for answer in answers], dtype=object).reshape(len(answers), len(JudgedAnswer._fields))
    return Panel(tuple(judges), named[:, 0], values.reshape(len(judges), len(answers)), named[:, 1], named[:, 2])
