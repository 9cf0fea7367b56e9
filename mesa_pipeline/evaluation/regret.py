"""What choosing better could gain, and where the gain is: from reading all five, over the policy, up to the oracle.

Gains are in the objective, score less token price. What was chosen and measured on the same questions is marked as hindsight:
it is optimistic, and the more so the finer the choice. Beside it stand estimates made on held-out questions
(``evaluation.predictability``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.evaluate import fully_scored, oracle_choices, outcomes_of
from mesa_pipeline.evaluation.predictability import choose_by_cells, choose_by_features, choose_by_siblings
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.policies.estimates import best_subset
from mesa_pipeline.subsets import FULL_SUBSET

RungKind = Literal["all", "policy", "held-out", "hindsight"]
GROUPS: Mapping[str, Callable[[QuestionInfo], str | None]] = {
    "domain": lambda question: question.domain,
    "capability": lambda question: question.qa_type,
}
"""What regret is told by."""


@dataclass(frozen=True)
class Rung:
    """One way to choose.

    Attributes:
        name: What chooses.
        kind: How it was measured: ``held-out`` on questions other than those it was chosen by, ``hindsight`` on the same.
        score: Mean score.
        tokens: Mean evidence tokens.
        gain: Mean objective less that of reading all five.
    """

    name: str
    kind: RungKind
    score: float
    tokens: float
    gain: Interval


@dataclass(frozen=True)
class GroupRegret:
    """How far choices stay behind each question's best subset, within a group of questions.

    Attributes:
        kind: What the group is by: ``domain`` or ``capability``.
        name: Of the group.
        questions: Number of its questions.
        policy: Mean regret of the policy, in score less token price, at least 0.
        everything: That of reading all five.
    """

    kind: str
    name: str
    questions: int
    policy: float
    everything: float


@dataclass(frozen=True)
class Decomposition:
    """The ways to choose, in the order in which they stand in the report.

    Attributes:
        questions: Fully scored questions, each counted as often as it was tested.
        left_out: Tested questions left out because a subset is unscored or missing, counted likewise.
        rungs: Reading all five; held-out estimates, where there are two episodes or more; the policy; hindsight, up to the
            oracle.
        groups: Regret to the oracle by domain and by capability, each where there are two or more.
    """

    questions: int
    left_out: int
    rungs: tuple[Rung, ...]
    groups: tuple[GroupRegret, ...]

    def rung(self, name: str) -> Rung:
        """The rung of that name.

        Raises:
            KeyError: There is none.
        """
        for rung in self.rungs:
            if rung.name == name:
                return rung
        raise KeyError(name)


def regrets(matrix: OutcomeMatrix, choices: np.ndarray, lambda_: float) -> np.ndarray:
    """What each question's best subset would have been worth more than the chosen one, in score less token price.

    Args:
        matrix: Outcomes of n questions.
        choices: Shape ``(n,)``, masks.
        lambda_: Price of one evidence token, in score.

    Returns:
        Shape ``(n,)``, at least 0; NaN where any subset of the question is unscored.
    """
    utilities = matrix.scores - lambda_ * matrix.tokens
    lost: np.ndarray = utilities.max(axis=1) - utilities[np.arange(len(matrix)), choices - 1]
    return lost


def hindsight_choices(matrix: OutcomeMatrix, lambda_: float, cell: Callable[[QuestionInfo], object]) -> np.ndarray:
    """The best one subset of each cell by these very questions, all fully scored: shape ``(n,)``, masks."""
    utilities = matrix.scores - lambda_ * matrix.tokens
    cells = [cell(question) for question in matrix.questions]
    choices = np.zeros(len(matrix), dtype=np.int64)
    for value in dict.fromkeys(cells):
        inside = np.array([other == value for other in cells])
        choices[inside] = best_subset(utilities[inside].mean(axis=0), matrix.tokens[inside].mean(axis=0))
    return choices


def decompose_regret(matrix: OutcomeMatrix, tested: Mapping[str, Sequence[int]], settings: Settings) -> Decomposition:
    """Compare a policy's choices with reading all five, with held-out estimates and with hindsight.

    Args:
        matrix: Outcomes of different questions.
        tested: The masks the policy chose, one for each time a question was tested (once a split seed), by question id. A
            question counts as often, in every row; one that was never tested does not count. Its episode is one cluster of the
            intervals.
        settings: Token price, shrinkage, bootstrap.

    Raises:
        ArtifactError: No tested question is scored under all 31 subsets.
    """
    asked = matrix.select(np.array([question.id in tested for question in matrix.questions], dtype=bool))
    complete = fully_scored(asked)
    times = [len(tested[question.id]) for question in complete.questions]
    rows = np.repeat(np.arange(len(complete)), times)
    policy = np.array([mask for question in complete.questions for mask in tested[question.id]], dtype=np.int64)
    repeated = OutcomeMatrix(tuple(complete.questions[row] for row in rows), complete.scores[rows], complete.tokens[rows])
    rungs = [
        _rung("all five", "all", repeated, np.full(len(repeated), FULL_SUBSET), settings),
        *(_rung(name, "held-out", repeated, masks[rows], settings) for name, masks in _held_out(complete, settings)),
        _rung("frozen policy", "policy", repeated, policy, settings),
        *(_rung(name, "hindsight", repeated, masks, settings) for name, masks in _hindsight(repeated, settings)),
    ]
    left_out = sum(map(len, tested.values())) - len(repeated)
    return Decomposition(len(repeated), left_out, tuple(rungs), _by_group(repeated, policy, settings.search.lambda_))


def _by_group(matrix: OutcomeMatrix, choices: np.ndarray, lambda_: float) -> tuple[GroupRegret, ...]:
    lost = regrets(matrix, choices, lambda_)
    lost_by_all = regrets(matrix, np.full(len(matrix), FULL_SUBSET), lambda_)
    found: list[GroupRegret] = []
    for kind, group in GROUPS.items():
        names = [group(question) for question in matrix.questions]
        known = sorted({name for name in names if name})
        for name in known if len(known) > 1 else ():
            inside = np.array([other == name for other in names])
            found.append(
                GroupRegret(kind, name, int(inside.sum()), float(lost[inside].mean()), float(lost_by_all[inside].mean()))
            )
    return tuple(found)


def _held_out(matrix: OutcomeMatrix, settings: Settings) -> Iterator[tuple[str, np.ndarray]]:
    if len(set(matrix.episode_ids)) < 2:
        return
    strength = settings.policies.shrinkage
    utilities = matrix.scores - settings.search.lambda_ * matrix.tokens
    cells = np.empty(len(matrix), dtype=object)
    cells[:] = [_label_cell(question) for question in matrix.questions]
    yield "one subset for all", choose_by_cells(matrix, utilities, np.zeros(len(matrix)), strength)
    yield "by domain and capability", choose_by_cells(matrix, utilities, cells, strength)
    yield "by question features", choose_by_features(matrix, utilities, labels=False)
    yield "by features and labels", choose_by_features(matrix, utilities, labels=True)
    yield "by other questions of the episode", choose_by_siblings(matrix, utilities, strength)


def _hindsight(matrix: OutcomeMatrix, settings: Settings) -> Iterator[tuple[str, np.ndarray]]:
    lambda_ = settings.search.lambda_
    yield "best one subset", hindsight_choices(matrix, lambda_, lambda question: None)
    yield "best subset of each domain and capability", hindsight_choices(matrix, lambda_, _label_cell)
    yield "best subset of each question (oracle)", oracle_choices(matrix, lambda_)


def _label_cell(question: QuestionInfo) -> tuple[str, str | None]:
    return question.domain, question.qa_type


def _rung(name: str, kind: RungKind, matrix: OutcomeMatrix, choices: np.ndarray, settings: Settings) -> Rung:
    lambda_, evaluation = settings.search.lambda_, settings.evaluation
    found = outcomes_of(matrix, choices, name)
    everything = matrix.scores[:, FULL_SUBSET - 1] - lambda_ * matrix.tokens[:, FULL_SUBSET - 1]
    gain = paired_bootstrap(
        found.scores - lambda_ * found.tokens - everything,
        matrix.episode_ids,
        evaluation.bootstrap_samples,
        evaluation.confidence,
        evaluation.bootstrap_seed,
    )
    return Rung(name, kind, float(found.scores.mean()), float(found.tokens.mean()), gain)
