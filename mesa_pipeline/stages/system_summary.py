"""What one baseline's answers are worth over all questions asked, and what its builds and its questions took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.system_costs import MeanCost, mean_cost
from mesa_pipeline.stages.baselines import build_costs, read_answers
from mesa_pipeline.stages.context import StageContext


@dataclass(frozen=True)
class SystemSummary:
    """One system on all questions, train, validation and test together.

    Attributes:
        figures: Means by name, those that are known: score in [0, 1], tokens and calls of a question, unscored questions.
        rows: What a trajectory's build and a question's retrieval took on average.
    """

    figures: Mapping[str, float]
    rows: Sequence[Mapping[str, object]]


def system_summary(context: StageContext, code: str) -> SystemSummary:
    """What is stored of a baseline's answers.

    Raises:
        ArtifactError: The episodes are not there yet.
    """
    outcomes = list(read_answers(context, code).values())
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    figures: dict[str, float] = {"unscored": float(len(outcomes) - len(scores))}
    if scores:
        figures["score"] = float(np.mean(scores))
    if outcomes:
        figures["evidence_tokens"] = float(np.mean([outcome.tokens for outcome in outcomes]))
        figures["query_tokens"] = float(np.mean([outcome.query_tokens for outcome in outcomes]))
    title = BASELINES[code].title
    rows = [
        _row("build, a trajectory", mean_cost(code, title, build_costs(context, code).values())),
        _row("retrieval, a question", mean_cost(code, title, [outcome.cost for outcome in outcomes])),
    ]
    return SystemSummary(figures, rows)


def _row(phase: str, found: MeanCost) -> dict[str, object]:
    return {
        "phase": phase,
        "measured": found.n,
        "seconds": f"{found.seconds:.3f}",
        "model calls": found.calls,
        "prompt tokens": found.prompt_tokens,
        "completion tokens": found.completion_tokens,
        "embedded tokens": found.embedded_tokens,
        "noted": "; ".join(f"{name}: {times:,}" for name, times in found.notes.items()),
    }
