"""The report's section on further judges of the same answers, in the shape of the paper's Table 6."""

from collections.abc import Sequence
from itertools import chain

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.leads import LeadStanding
from mesa_pipeline.evaluation.panel import JudgedSeed, JudgeStanding, judge_standings, pair_standings
from mesa_pipeline.evaluation.statistics import Interval, MeanStd
from mesa_pipeline.reports import text
from mesa_pipeline.reports.cells import difference_cells
from mesa_pipeline.reports.document import Cell, Column, Row, Section, Table

NAME_CHARS = 40
SYSTEM_NAMES = {
    FROZEN_ROW: "MESA (frozen policy)",
    "all": "All five structures",
    **{code: baseline.title for code, baseline in BASELINES.items()},
}


def judges_section(judged: Sequence[JudgedSeed], leads: Sequence[LeadStanding] = ()) -> Section:
    """What each judge makes of the answers of each system, how far it puts MESA before the others, and how far judges agree.

    Args:
        judged: At least one seed, all with the same judges.
        leads: Of all seeds together.
    """
    paragraphs = ("The same test answers, scored by several judges: a ranking that turns with the judge is no ranking.",)
    led = (_leads_table(leads),) if leads else ()
    return Section("judges", "Judges", paragraphs, (_accuracy_table(judged), *led, _agreement_table(judged)))


def _accuracy_table(judged: Sequence[JudgedSeed]) -> Table:
    found = judge_standings(judged)
    judges = list(dict.fromkeys(standing.judge for standing in found))
    by_system: dict[str, list[JudgeStanding]] = {}
    for standing in found:
        by_system.setdefault(standing.system, []).append(standing)
    columns = (
        Column("Answers of", "left"),
        *(Column(text.printable(judge, NAME_CHARS), unit="x100") for judge in judges),
        Column("Without a verdict", unit="answers x judges"),
    )
    rows = tuple(
        Row(
            (
                Cell(SYSTEM_NAMES.get(system, text.printable(system))),
                *(_spread_cell(standing.accuracy, 100.0, 2) for standing in standings),
                _count_cell(sum(standing.unjudged for standing in standings if standing.judge in judged[0].judges)),
            ),
            highlighted=system == FROZEN_ROW,
        )
        for system, standings in by_system.items()
    )
    behind = "; ".join(f"{text.printable(name)} is {text.printable(model)}" for name, model in judged[0].judges.items())
    caption = (
        f"Test questions only; accuracy is the mean score over the answers with a verdict, {_over(judged)}. {behind}. "
        "Majority: right where more than half of the judges with a verdict score at least 1/2. Where as many say right as "
        "wrong there is no majority, and the answer is left out of that column, as is one without a verdict out of its judge's."
    )
    return Table("judges", "Accuracy by judge", columns, rows, caption)


def _leads_table(leads: Sequence[LeadStanding]) -> Table:
    """A row for each system, two columns for each judge."""
    judges = list(dict.fromkeys(lead.judge for lead in leads))
    by_system: dict[str, dict[str, Interval]] = {}
    for lead in leads:
        by_system.setdefault(lead.system, {})[lead.judge] = lead.difference
    level = text.confidence(leads[0].difference.confidence)
    headings = ((Column(text.printable(judge, NAME_CHARS), unit="x100"), Column("Interval", unit=level)) for judge in judges)
    rows = tuple(
        Row((Cell(SYSTEM_NAMES.get(system, text.printable(system))), *chain(*(difference_cells(found.get(j)) for j in judges))))
        for system, found in by_system.items()
    )
    caption = (
        "MESA's score less that of each other system, by each judge and by their majority, paired by question over the test "
        "questions of all seeds where both have a verdict; the bootstrap intervals resample whole episodes."
    )
    return Table("leads", "MESA minus the others, by judge", (Column("Answers of", "left"), *chain(*headings)), rows, caption)


def _agreement_table(judged: Sequence[JudgedSeed]) -> Table:
    rows = tuple(
        Row(
            (
                Cell(f"{text.printable(pair.first, NAME_CHARS)} and {text.printable(pair.second, NAME_CHARS)}"),
                _count_cell(pair.answers),
                _spread_cell(pair.agreement, 100.0, 1),
                _spread_cell(pair.kappa, 1.0, 3),
            )
        )
        for pair in pair_standings(judged)
    )
    caption = (
        f"Over the answers on which both gave a verdict, those of all rows above together, {_over(judged)}; a score of at "
        "least 1/2 counts as right. Kappa is Cohen's: agreement beyond chance, at most 1, and without value where chance alone "
        "would agree."
    )
    columns = (Column("Judges", "left"), Column("Answers"), Column("Agreement", unit="%"), Column("Kappa"))
    return Table("agreement", "Agreement of the judges", columns, rows, caption)


def _over(judged: Sequence[JudgedSeed]) -> str:
    spread = f"mean ± sample standard deviation over {len(judged)} split seeds"
    return spread if len(judged) > 1 else "one split seed, so no spread over seeds"


def _count_cell(count: int) -> Cell:
    return Cell(text.number(count), count)


def _spread_cell(value: MeanStd | None, scale: float, decimals: int) -> Cell:
    if value is None:
        return Cell(text.ABSENT)
    shown = text.number(scale * value.mean, decimals)
    return Cell(shown if value.std is None else f"{shown} ± {text.number(scale * value.std, decimals)}", value.mean)
