"""What a night tells the tracker: champion and challenger side by side, and what each reads for each question.

Scores are told times a hundred, as in ``stages.search_tracking``.
"""

from collections.abc import Mapping

import numpy as np

from mesa_pipeline.evaluation.evaluate import outcomes_of
from mesa_pipeline.evaluation.nights import Night
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.stages.comparison_tracking import question_rows, rounded
from mesa_pipeline.subsets import FULL_SUBSET
from mesa_pipeline.tracking import TrackedTest

NIGHT_TABLE, POLICIES_TABLE, QUESTIONS_TABLE = "night", "night_policies", "night_questions"
EVERYTHING = "all"


def tracked_night(
    night: Night, matrix: OutcomeMatrix, choices: Mapping[str, np.ndarray], names: Mapping[str, str]
) -> TrackedTest:
    """A night as the tracker knows it.

    Args:
        night: The night.
        matrix: Outcomes of the n questions that neither policy was made with.
        choices: Masks by role (``champion``, ``challenger``), each of shape ``(n,)``.
        names: Name of the policy by role.
    """
    shown = {**choices, EVERYTHING: np.full(len(matrix), FULL_SUBSET, dtype=np.int64)}
    policies = [_policy_row(role, names.get(role, EVERYTHING), matrix, masks) for role, masks in shown.items()]
    figures = {f"night/{row['role']}/{name}": row[name] for row in policies for name in ("score", "tokens")}
    metrics = {name: value if isinstance(value, float) else None for name, value in figures.items()}
    tables = {
        NIGHT_TABLE: [_night_row(night)],
        POLICIES_TABLE: policies,
        QUESTIONS_TABLE: question_rows(matrix, {role: masks.tolist() for role, masks in shown.items()}),
    }
    return TrackedTest({**metrics, **_difference(night)}, tables)


def _difference(night: Night) -> dict[str, float | None]:
    found = night.contest.difference
    if found is None:
        return {}
    ends = {"night/difference": found.mean, "night/difference low": found.low, "night/difference high": found.high}
    return {name: 100 * value for name, value in ends.items()}


def _night_row(night: Night) -> dict[str, object]:
    contest, found = night.contest, night.contest.difference
    return {
        "decision": contest.decision,
        "verdict": night.verdict,
        "difference in worth": rounded(100 * found.mean) if found else None,
        "from": rounded(100 * found.low) if found else None,
        "to": rounded(100 * found.high) if found else None,
        "confidence": found.confidence if found else None,
        "episodes": contest.episodes,
        "questions": contest.questions,
        "at": night.at,
    }


def _policy_row(role: str, name: str, matrix: OutcomeMatrix, masks: np.ndarray) -> dict[str, object]:
    found = outcomes_of(matrix, masks, name)
    scored = found.scores[np.isfinite(found.scores)]
    return {
        "role": role,
        "policy": name,
        "score": rounded(100 * float(scored.mean())) if len(scored) else None,
        "tokens": rounded(float(found.tokens.mean())) if len(matrix) else None,
        "questions": len(matrix),
        "unscored": len(matrix) - len(scored),
    }
