"""The report's section on a hard limit of evidence tokens."""

from collections.abc import Sequence

from mesa_pipeline.evaluation.budget import FIXED_CURVE, POLICY_CURVE, BudgetCurve, BudgetPoint
from mesa_pipeline.reports import text
from mesa_pipeline.reports.budget_figure import budget_figure
from mesa_pipeline.reports.document import Cell, Column, Row, Section, Table
from mesa_pipeline.reports.metrics import csv_text

CSV_COLUMNS = (
    "system",
    "budget",
    "score",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "tokens",
    "most_tokens",
    "fitting",
)
NOT_MEASURED = "Nothing to show before a policy, frozen with its expected values, has been tested on held-out episodes."
_TITLE = "Within a token budget"


def budget_section(curves: Sequence[BudgetCurve]) -> Section:
    """What the frozen policy reaches when no more than so many evidence tokens may be read."""
    if not curves:
        return Section("budget", _TITLE, (NOT_MEASURED,))
    paragraphs = (
        "What a hard limit on evidence tokens gives up. The policy's choice is read where it fits, else the subset that fits "
        "with the highest score expected from the training questions, each counted exactly.",
        "A question where no subset fits counts as score 0 here, and room left over stays empty. When a question is asked with "
        "a budget, pieces of further evidence fill that room; the outcome table has no such readings.",
    )
    return Section("budget", _TITLE, paragraphs, (budget_figure(curves), _table(curves)))


def budget_csv(curves: Sequence[BudgetCurve]) -> str:
    """One line for each system and budget."""
    return csv_text(CSV_COLUMNS, [_csv_row(curve.name, point) for curve in curves for point in curve.points])


def _csv_row(name: str, point: BudgetPoint) -> tuple[str | float, ...]:
    score, difference = point.score, point.versus_fixed
    return (
        *(name, point.budget, score.mean, score.low, score.high),
        *(difference.mean, difference.low, difference.high, point.tokens, point.most_tokens, point.fitting),
    )


def _table(curves: Sequence[BudgetCurve]) -> Table:
    policy = next(curve for curve in curves if curve.name == POLICY_CURVE)
    others = [curve for curve in curves if curve.name != POLICY_CURVE]
    columns = (
        Column("Budget", unit="tokens"),
        Column("Anything fits"),
        Column("Frozen policy", unit="x100"),
        Column("Its tokens"),
        *(Column(curve.name.capitalize(), unit="x100") for curve in others),
        Column(f"Difference to the {FIXED_CURVE}"),
    )
    rows = [_row(place, point, others) for place, point in enumerate(policy.points)]
    level = text.confidence(policy.points[0].score.confidence)
    caption = (
        f"Mean test score over the questions of all split seeds, and the paired difference with its {level} interval. No "
        "question of any system was given more tokens than the budget."
    )
    return Table("budget", "Scores within a budget", columns, tuple(rows), caption)


def _row(place: int, point: BudgetPoint, others: Sequence[BudgetCurve]) -> Row:
    found = point.versus_fixed
    return Row(
        (
            Cell(text.number(point.budget), point.budget),
            Cell(text.percent(point.fitting), point.fitting),
            Cell(text.score(point.score.mean), point.score.mean),
            Cell(text.number(point.tokens), point.tokens),
            *(Cell(text.score(curve.points[place].score.mean), curve.points[place].score.mean) for curve in others),
            Cell(f"{text.difference(found.mean)} ({text.interval(found.low, found.high)})", found.mean),
        )
    )
