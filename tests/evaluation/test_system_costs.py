"""Means of what builds took, worked by hand."""

import math

from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.system_costs import mean_cost, one_after_another, side_by_side
from mesa_pipeline.llm.metering import Cost

STRUCTURES = {
    "S": {"a": Cost(seconds=2.0, calls=1, prompt_tokens=10), "b": Cost(seconds=1.0)},
    "G": {"a": Cost(seconds=5.0, calls=2, prompt_tokens=30), "b": Cost(seconds=0.5), "c": Cost(seconds=9.0)},
}


def test_means_over_the_trajectories():
    costs = [Cost(seconds=1.0, calls=2, completion_tokens=4, notes={"odd": 1}), Cost(seconds=3.0, notes={"odd": 2})]
    found = mean_cost("x", "X", [*costs, Cost(seconds=8.0, embedded_tokens=3)])
    assert (found.n, found.seconds, found.median_seconds) == (3, 4.0, 3.0)
    assert (found.calls, found.completion_tokens, found.embedded_tokens) == (2 / 3, 4 / 3, 1.0)
    assert found.notes == {"odd": 3}


def test_the_interval_is_that_of_the_mean_over_resampled_trajectories(settings: Settings):
    found = mean_cost("x", "X", [Cost(seconds=1.0), Cost(seconds=3.0)], settings.evaluation).interval
    assert found is not None
    assert (found.low, found.mean, found.high, found.clusters) == (1.0, 2.0, 3.0, 2)  # both the same in half of the resamples
    assert mean_cost("x", "X", [Cost(seconds=1.0)]).interval is None
    assert mean_cost("x", "X", [], settings.evaluation).interval is None


def test_structures_one_after_another_and_side_by_side():
    together = one_after_another(STRUCTURES)
    found = {key: (cost.seconds, cost.calls, cost.prompt_tokens) for key, cost in together.items()}
    assert found == {"a": (7.0, 3, 40), "b": (1.5, 0, 0)}
    assert {key: cost.seconds for key, cost in side_by_side(STRUCTURES).items()} == {"a": 5.0, "b": 1.0}


def test_nothing_noted_gives_no_figure():
    found = mean_cost("x", "X", one_after_another({}).values())
    assert found.n == 0
    assert math.isnan(found.seconds)
