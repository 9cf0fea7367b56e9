"""The result in one sentence, and the few numbers behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.evaluation.held_out import FROZEN_ROW, TestResult
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Cell, Column, KeyFigure, Row, Table
from mesa_pipeline.reports.standings import Standing, first_of_kind

NOT_TESTED = (
    "No policy has been tested on held-out episodes yet, so there is no result to report: below is what the sweep alone shows. "
    "Run mesa optimize and mesa test, then mesa report again."
)


@dataclass(frozen=True)
class Headline:
    """What to print in large type."""

    verdict: str
    notes: tuple[str, ...]
    key_figures: tuple[KeyFigure, ...]


@dataclass(frozen=True)
class Gap:
    """The frozen policy's score difference to reading all five: mean over seeds, and both ends of its interval.

    ``low`` and ``high`` are NaN where nothing can be said of them; ``source`` says how seeds were brought together.
    """

    mean: float
    low: float
    high: float
    confidence: float
    source: str

    @property
    def ends(self) -> str:
        return f"{text.confidence(self.confidence)} interval {text.interval(self.low, self.high)}"


def frozen_gap(frozen: Standing, pooled: Interval | None) -> Gap:
    """The difference with its pooled interval; without one, with the ends of the seeds' own intervals averaged."""
    if pooled is None or pooled.clusters < 2:
        return Gap(frozen.difference.mean, frozen.low, frozen.high, frozen.confidence, "the ends of their intervals averaged")
    source = "the interval resamples each episode with all its appearances in them"
    return Gap(frozen.difference.mean, pooled.low, pooled.high, pooled.confidence, source)


def headline(tests: Sequence[TestResult], found: Sequence[Standing], pooled: Interval | None = None) -> Headline:
    """The frozen policy against reading all five structures."""
    frozen, full = first_of_kind(found, "frozen"), first_of_kind(found, "all")
    if frozen is None or full is None:
        return Headline(NOT_TESTED, (), ())
    gap = frozen_gap(frozen, pooled)
    notes = (_across_seeds(tests, frozen, gap), _unscored_note(frozen))
    return Headline(_verdict(frozen, full, gap), tuple(note for note in notes if note), _key_figures(frozen, full, gap))


def token_share(frozen: Standing, full: Standing) -> float:
    """Evidence tokens of the frozen policy as a share of those of reading all five; NaN where the latter reads nothing."""
    return frozen.tokens.mean / full.tokens.mean if full.tokens.mean > 0 else np.nan


def _verdict(frozen: Standing, full: Standing, gap: Gap) -> str:
    against = f"against {text.score(full.score.mean)} for reading all five"
    scores = f"scores {text.score(frozen.score.mean)} of 100 on held-out questions, {against}"
    cost = f"with {text.percent(token_share(frozen, full))} of the evidence tokens"
    return f"The frozen policy, which decides for each question what memory to read, {scores}, {cost}: {_conclusion(gap)}."


def _conclusion(gap: Gap) -> str:
    size = text.score(abs(gap.mean))
    if not np.isfinite(gap.low):
        return f"a difference of {text.difference(gap.mean)}, from too few episodes to say how certain"
    if gap.low > 0:
        return f"it is better, by {size} ({gap.ends}, above zero)"
    if gap.high < 0:
        return f"it lost, by {size} ({gap.ends}, below zero)"
    if gap.low == gap.high == 0:
        return "the two give the same score on every question"
    return f"the difference of {text.difference(gap.mean)} is not significant ({gap.ends}, which spans zero)"


def _across_seeds(tests: Sequence[TestResult], frozen: Standing, gap: Gap) -> str:
    if frozen.seeds == 1:
        return f"One split seed, {text.plural(frozen.questions, 'test question')}: another split may say otherwise."
    rows = [
        comparison.versus_all for test in tests for comparison in test.comparisons if comparison.evaluation.name == FROZEN_ROW
    ]
    above = sum(row.excludes_zero and row.mean > 0 for row in rows)
    below = sum(row.excludes_zero and row.mean < 0 for row in rows)
    return (
        f"Mean over {frozen.seeds} split seeds, {gap.source}. Taken one by one, the interval lies "
        f"above zero in {above}, spans zero in {len(rows) - above - below} and lies below zero in {below} of "
        f"{len(rows)} splits."
    )


def _unscored_note(frozen: Standing) -> str:
    return f"{text.plural(frozen.unscored, 'test question')} unscored, left out of the means." if frozen.unscored else ""


def _key_figures(frozen: Standing, full: Standing, gap: Gap) -> tuple[KeyFigure, ...]:
    return (
        KeyFigure(
            text.score(frozen.score.mean), "score of the frozen policy, x100", f"all five: {text.score(full.score.mean)}"
        ),
        KeyFigure(
            text.difference(gap.mean),
            "difference to all five, x100",
            f"{gap.ends}, {text.plural(frozen.seeds, 'split seed')}",
        ),
        KeyFigure(text.percent(token_share(frozen, full)), "share of the evidence tokens", "100% is reading all five"),
        KeyFigure(
            text.number(frozen.tokens.mean), "evidence tokens per question", f"all five: {text.number(full.tokens.mean)}"
        ),
    )


def seeds_table(tests: Sequence[TestResult]) -> Table:
    """Each split seed's own test."""
    level = text.confidence(tests[0].row(FROZEN_ROW).versus_all.confidence)
    columns = (
        Column("Seed"),
        Column("Frozen policy", "left"),
        Column("Test questions"),
        Column("Episodes"),
        Column("Score", unit="x100"),
        Column("Difference to all", unit="x100"),
        Column("Interval", unit=level),
        Column("Validation − test", unit="x100"),
    )
    rows = tuple(_seed_row(test) for test in sorted(tests, key=lambda test: test.seed))
    caption = (
        f"One test per split seed, on episodes nothing was fitted to; {level} bootstrap interval over whole episodes. "
        "Validation − test is by how much the score on validation, where the policy was chosen, overstated it."
    )
    return Table("seeds", "Each split seed", columns, rows, caption)


def _seed_row(test: TestResult) -> Row:
    row = test.row(FROZEN_ROW)
    worth, gap = row.evaluation, row.versus_all
    ends = text.interval(gap.low, gap.high) if gap.clusters > 1 else text.ABSENT
    return Row(
        (
            Cell(str(test.seed), test.seed),
            Cell(text.printable(test.frozen)),
            Cell(text.number(worth.n), worth.n),
            Cell(text.number(gap.clusters), gap.clusters),
            Cell(text.score(worth.score), worth.score),
            Cell(text.difference(gap.mean), gap.mean),
            Cell(ends, gap.low),
            Cell(text.difference(test.inflation), test.inflation),
        )
    )
