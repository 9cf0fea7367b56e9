"""What the report says of credit and regret: all swept questions for the structures, the tested ones for the policies."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.credit import GroupCredit, credit, group_credit, mean_credit, minimal_winning
from mesa_pipeline.evaluation.evaluate import SUBSET_SIZES, fully_scored
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.evaluation.regret import Decomposition, decompose_regret
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.subsets import FULL_SUBSET

ALL_QUESTIONS = "all questions"


@dataclass(frozen=True)
class CreditSummary:
    """Credit over groups of questions, and the decomposition of regret.

    Attributes:
        overall: Mean credit over all fully scored questions.
        capabilities: By capability; empty where the questions carry none.
        domains: By domain; empty where there is only one.
        enough: Shape ``(6,)``: share of questions whose smallest subset that scores at least as well as all five has so many
            structures; the first entry is 0.
        left_out: Questions left out because a subset is unscored.
        regret: Over the test questions of every tested seed.
    """

    overall: GroupCredit
    capabilities: tuple[GroupCredit, ...]
    domains: tuple[GroupCredit, ...]
    enough: tuple[float, ...]
    left_out: int
    regret: Decomposition


def summarise_credit(matrix: OutcomeMatrix, tests: Sequence[TestResult], settings: Settings) -> CreditSummary:
    """Everything the report says of credit and regret.

    Args:
        matrix: Outcomes of every swept question.
        tests: At least one test, each on questions of ``matrix``: what is known of test questions must not reach a search, so
            nothing is summarised before there is a test.
        settings: Value of reading nothing, token price, shrinkage, bootstrap.

    Raises:
        ArtifactError: No question is scored under all 31 subsets, or ``matrix`` lacks a question that was tested.
    """
    found = credit(matrix, settings.evaluation.empty_score)
    domains = group_credit(found, lambda question: question.domain or None, settings.evaluation)
    return CreditSummary(
        overall=mean_credit(found, ALL_QUESTIONS, settings.evaluation),
        capabilities=group_credit(found, lambda question: question.qa_type, settings.evaluation),
        domains=domains if len(domains) > 1 else (),
        enough=_enough(fully_scored(matrix)),
        left_out=found.left_out,
        regret=_tested_regret(matrix, tests, settings),
    )


def _enough(matrix: OutcomeMatrix) -> tuple[float, ...]:
    minimal = minimal_winning(matrix.scores, matrix.scores[:, FULL_SUBSET - 1])
    smallest = np.where(minimal, SUBSET_SIZES[1:], SUBSET_SIZES.max()).min(axis=1)
    return tuple(map(float, np.bincount(smallest, minlength=SUBSET_SIZES.max() + 1) / len(matrix)))


def _tested_regret(matrix: OutcomeMatrix, tests: Sequence[TestResult], settings: Settings) -> Decomposition:
    tested: dict[str, list[int]] = defaultdict(list)
    for test in tests:
        for question, mask in test.choices.items():
            tested[question].append(mask)
    lacking = len(tested.keys() - {question.id for question in matrix.questions})
    if lacking:
        raise ArtifactError(f"{lacking} tested questions are not in the outcome table; run `mesa sweep` again")
    return decompose_regret(matrix, tested, settings)
