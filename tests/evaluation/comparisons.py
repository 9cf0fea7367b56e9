"""Two tests on six questions, and a baseline that was asked some of them."""

from mesa_pipeline.evaluation.compared_systems import Answers
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison, Receipt, TestResult
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.evaluation.systems import SystemOutcome
from mesa_pipeline.llm.metering import Cost

SINGLES = {"S": 1, "T": 2, "G": 4, "V": 8, "R": 16, "all": 31}


def result(seed, choices, kept=True):
    """A test that kept the single structures, all five and, as the oracle, S."""
    row = Comparison(Evaluation(FROZEN_ROW, "frozen", 2, 0.5, 1000.0, 2.0, 0.5, 0), Interval(0.0, -1.0, 1.0, 0.95, 3))
    others = {name: (mask,) * len(choices) for name, mask in (SINGLES | {"oracle": 1}).items()} if kept else {}
    return TestResult("d", seed, "p", (row,), choices, row.evaluation, Receipt("m", "o", "t"), others)


def outcome(question, score, tokens=100, calls=0, prompt_tokens=0):
    return SystemOutcome(question, score, tokens, "a", Cost(calls=calls, prompt_tokens=prompt_tokens))


def two_tests():
    """Seed 0: S on g1#0 (1), all on w1#3 (1/2). Seed 1: T on w1#3 (1) and on w1#4 (1)."""
    return [result(1, {"w1#4": 2, "w1#3": 2}), result(0, {"w1#3": 31, "g1#0": 1})]


def looping():
    """Right on w1#3 after two calls, unscored on g1#0, and never asked w1#4."""
    outcomes = [outcome("w1#3", 1.0, 300, 2, 1000), outcome("g1#0", None, 100)]
    return Answers("loop", "Loop", {found.question_id: found for found in outcomes})


def named(standings):
    """Standings by the code of their system."""
    return {standing.code: standing for standing in standings}
