"""What builds and questions take on average: a trajectory's memory in the paper's Table 8."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.evaluation.statistics import Interval, clustered_bootstrap
from mesa_pipeline.llm.metering import Cost

PARALLEL_ROW = "parallel"
"""Stands for MESA with its structures built side by side."""


@dataclass(frozen=True)
class MeanCost:
    """What a system's pieces of work took, such as its builds; every mean is over those with a note of it.

    Attributes:
        code: Of the system.
        title: Its name in tables.
        n: How many there are.
        seconds: Mean wall seconds, as noted when the work was done.
        median_seconds: Their median.
        calls: Mean replies of language models.
        prompt_tokens: Mean tokens these were sent.
        completion_tokens: Mean tokens of what they replied.
        embedded_tokens: Mean tokens turned into vectors.
        notes: How often something worth counting happened, over all of them.
        interval: Of the mean seconds, where one was asked for and there is work to learn it from.
    """

    code: str
    title: str
    n: int
    seconds: float
    median_seconds: float
    calls: float
    prompt_tokens: float
    completion_tokens: float
    embedded_tokens: float
    notes: Mapping[str, int]
    interval: Interval | None = None


def mean_cost(code: str, title: str, costs: Collection[Cost], evaluation: EvaluationSettings | None = None) -> MeanCost:
    """The means; NaN where there is nothing.

    Args:
        code: Of the system.
        title: Its name in tables.
        costs: Of pieces of work that are independent of one another, where an interval is asked for.
        evaluation: Bootstrap settings of the interval; without them there is none.
    """

    def mean(value: Callable[[Cost], float]) -> float:
        return float(np.mean([value(cost) for cost in costs])) if costs else float("nan")

    total = sum(costs, Cost())
    return MeanCost(
        code=code,
        title=title,
        n=len(costs),
        seconds=mean(lambda cost: cost.seconds),
        median_seconds=float(np.median([cost.seconds for cost in costs])) if costs else float("nan"),
        calls=mean(lambda cost: cost.calls),
        prompt_tokens=mean(lambda cost: cost.prompt_tokens),
        completion_tokens=mean(lambda cost: cost.completion_tokens),
        embedded_tokens=mean(lambda cost: cost.embedded_tokens),
        notes=dict(sorted(total.notes.items())),
        interval=_seconds_interval(costs, evaluation) if evaluation and costs else None,
    )


def _seconds_interval(costs: Collection[Cost], evaluation: EvaluationSettings) -> Interval:
    seconds = np.array([[cost.seconds] for cost in costs])
    samples, confidence, seed = evaluation.bootstrap_samples, evaluation.confidence, evaluation.bootstrap_seed
    (found,) = clustered_bootstrap(seconds, np.arange(len(seconds)), samples, confidence, seed)
    return found


def one_after_another(structures: Mapping[str, Mapping[str, Cost]]) -> dict[str, Cost]:
    """What all structures of a trajectory took together, for each trajectory of which that is known of all."""
    return {key: sum((costs[key] for costs in structures.values()), Cost()) for key in _shared(structures)}


def side_by_side(structures: Mapping[str, Mapping[str, Cost]]) -> dict[str, Cost]:
    """The longest of a trajectory's structures: what building them in parallel takes at least."""
    return {
        key: max((costs[key] for costs in structures.values()), key=lambda cost: cost.seconds) for key in _shared(structures)
    }


def _shared(structures: Mapping[str, Mapping[str, Cost]]) -> list[str]:
    keys = [set(costs) for costs in structures.values()]
    return sorted(set.intersection(*keys)) if keys else []
