"""What a test tells the tracker: figures of the policies tested, and tables that compare them, policy by policy and question
by question.

Scores and their differences are told times a hundred, as in ``stages.search_tracking``. Figures of the frozen policy stand
under ``test/``, those of the others under ``test of others/``, so that pages that sort by name keep each together.
"""

import math
from collections.abc import Mapping, Sequence

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison, TestResult
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.tracking import TrackedTest

ALWAYS_COMPARED = ("all", "best fixed", "oracle")
POLICIES_TABLE, QUESTIONS_TABLE = "policies", "questions"


def tracked_test(result: TestResult, matrix: OutcomeMatrix | None) -> TrackedTest:
    """A test as the tracker knows it.

    Args:
        result: The test.
        matrix: The outcomes it was made on; without them there is no table of questions.
    """
    metrics: dict[str, float | None] = {"test/inflation": 100 * result.inflation}
    for row in result.comparisons:
        name = row.evaluation.name
        if name == FROZEN_ROW:
            metrics |= {f"test/{figure}": value for figure, value in _figures(row).items()}
        elif name in _shown(result):
            metrics |= {f"test of others/{name}/{figure}": value for figure, value in _figures(row).items()}
    tables = {POLICIES_TABLE: [_policy_row(row) for row in result.comparisons]}
    if matrix is not None:
        tables[QUESTIONS_TABLE] = _questions(result, matrix)
    return TrackedTest(metrics, tables)


def question_rows(matrix: OutcomeMatrix, choices: Mapping[str, Sequence[int]]) -> list[dict[str, object]]:
    """A row for each of n questions: each policy's score, what it reads, and its evidence tokens.

    The scores come first: a page shows half a dozen columns before one has to scroll.

    Args:
        matrix: Outcomes of the n questions.
        choices: n masks by name of policy, in the order of the matrix.
    """
    scores, tokens = 100 * matrix.scores, matrix.tokens
    rows: list[dict[str, object]] = []
    for k, question in enumerate(matrix.questions):
        masks = {name: int(chosen[k]) for name, chosen in choices.items()}
        rows.append(
            {
                "question": question.text,
                **{f"score: {name}": rounded(scores[k, mask - 1]) for name, mask in masks.items()},
                **{f"reads: {name}": subsets.label(mask) for name, mask in masks.items()},
                **{f"tokens: {name}": rounded(tokens[k, mask - 1]) for name, mask in masks.items()},
                "domain": question.domain,
                "capability": question.qa_type or "",
                "id": question.id,
            }
        )
    return rows


def _questions(result: TestResult, matrix: OutcomeMatrix) -> list[dict[str, object]]:
    """What each of the policies shown reads for each question, and what comes of it."""
    order = {question: row for row, question in enumerate(sorted(question.id for question in matrix.questions))}
    positions = [order[question.id] for question in matrix.questions]
    others = {name: [result.others[name][position] for position in positions] for name in _shown(result)}
    return question_rows(matrix, {FROZEN_ROW: [result.choices[question.id] for question in matrix.questions], **others})


def _shown(result: TestResult) -> list[str]:
    """The few that a reader asks about first, beside the frozen policy: the table of policies has them all."""
    lookups = [row.evaluation.name for row in result.comparisons if row.evaluation.kind == "lookup"]
    return [row.evaluation.name for row in result.comparisons if row.evaluation.name in {*ALWAYS_COMPARED, *lookups[-1:]}]


def _figures(row: Comparison) -> dict[str, float | None]:
    return {
        "J": 100 * row.evaluation.score,
        "C": row.evaluation.tokens,
        "objective": 100 * row.evaluation.objective,
        "versus all": 100 * row.versus_all.mean,
        "versus all, low": 100 * row.versus_all.low,
        "versus all, high": 100 * row.versus_all.high,
    }


def _policy_row(row: Comparison) -> dict[str, object]:
    worth, gain = row.evaluation, row.versus_all
    return {
        "policy": worth.name,
        "score": rounded(100 * worth.score),
        "versus all": rounded(100 * gain.mean),
        "from": rounded(100 * gain.low),
        "to": rounded(100 * gain.high),
        "tokens": rounded(worth.tokens),
        "structures": rounded(worth.structures),
        "objective": rounded(100 * worth.objective),
        "questions": worth.n,
        "unscored": worth.unscored,
    }


def rounded(value: float) -> float | None:
    """A figure as tables show it; ``None`` for NaN."""
    return None if math.isnan(value) else round(float(value), 2)
