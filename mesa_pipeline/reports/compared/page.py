"""The page that holds the paper's tables and figures, and the main report's section on other systems."""

from collections.abc import Mapping, Sequence

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.system_standings import SystemStanding
from mesa_pipeline.reports import text
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.compared.systems import capabilities_table, compared_standings, locomo_splits_table, strongest
from mesa_pipeline.reports.document import Figure, KeyFigure, Report, Section, Table
from mesa_pipeline.reports.tables import facts_table

ALONE = "No other system was run on all questions, so MESA stands alone; run mesa baselines run."

Made = Mapping[str, tuple[str, tuple[Table | Figure, ...]]]


def compared_report(inputs: ComparedInputs, made: Made) -> Report:
    """The page: a section for each of the paper's tables and figures, then where every system comes from."""
    standings = compared_standings(inputs)
    sections = [Section(name, title, (), tuple(items)) for name, (title, items) in made.items() if items]
    return Report(
        title=f"MESA beside other systems: {text.printable(inputs.report.dataset)}",
        verdict=_verdict(standings),
        notes=_notes(standings),
        key_figures=_key_figures(standings),
        sections=(
            *sections,
            *_missing_section([title for title, items in made.values() if not items]),
            _systems_section(inputs, standings),
            _provenance_section(inputs),
        ),
    )


def systems_section(inputs: ComparedInputs) -> Section:
    """The main table, for the dataset's own report."""
    paragraphs = (
        f"{_verdict(compared_standings(inputs))} The paper's other tables and figures, by domain, token F1, "
        "construction time and more, stand in the page that mesa baselines report writes.",
    )
    return Section("systems", "Other systems", paragraphs, (*capabilities_table(inputs), *locomo_splits_table(inputs)))


def _verdict(standings: Sequence[SystemStanding]) -> str:
    best, mesa = strongest(standings), standings[-1]
    if mesa.score is None:
        return "No answer of MESA has a score, so there is nothing to compare."
    said = f"MESA scores {_shown(mesa)} on held-out questions"
    if best is None or best.behind is None:
        return f"{said}. {ALONE}"
    run = sum(found.kind == "baseline" and not found.unasked for found in standings)
    which = f"the strongest of {run} systems" if run > 1 else "the one system"
    gap = f"MESA minus it {text.difference(best.behind.mean)}"
    if best.behind.clusters > 1:
        ends = text.interval(best.behind.low, best.behind.high)
        gap += f", {text.confidence(best.behind.confidence)} interval {ends}"
    return f"{said}; {which} run beside it, {text.printable(best.title)}, scores {_shown(best)} ({gap})."


def _shown(standing: SystemStanding) -> str:
    if standing.score is None:
        return text.ABSENT
    mean = text.score(standing.score.mean)
    return mean if standing.score.std is None else f"{mean} ± {text.score(standing.score.std)}"


def _notes(standings: Sequence[SystemStanding]) -> tuple[str, ...]:
    run = {found.code for found in standings}
    lacking = [baseline.title for code, baseline in BASELINES.items() if code not in run]
    partly = [text.printable(found.title) for found in standings if found.unasked]
    return (
        "All systems share reader, reward, splits and token counter; only what they remember and return differs.",
        *((f"Not run with these settings: {', '.join(lacking)}.",) if lacking else ()),
        *((f"Run on part of the questions: {', '.join(partly)}.",) if partly else ()),
    )


def _key_figures(standings: Sequence[SystemStanding]) -> tuple[KeyFigure, ...]:
    best, mesa = strongest(standings), standings[-1]
    shown = [(mesa, "MESA, score x100")]
    if best is not None:
        shown.append((best, f"{text.printable(best.title)}, strongest other, score x100"))
    return tuple(
        KeyFigure(
            _shown(found),
            meaning,
            f"{text.number(found.tokens.mean)} evidence tokens a question" if found.tokens else "",
        )
        for found, meaning in shown
    )


def _missing_section(titles: Sequence[str]) -> tuple[Section, ...]:
    """What the paper shows and this page does not."""
    said = "Not of this dataset, or not measured: further judges take mesa judge, ablations mesa ablate."
    return (Section("missing", "Not shown", (said,), (), tuple(titles)),) if titles else ()


def _systems_section(inputs: ComparedInputs, standings: Sequence[SystemStanding]) -> Section:
    run = {found.code for found in standings}
    facts = []
    for code, baseline in BASELINES.items():
        known = baseline.provenance
        told = [
            known.source,
            f"runs {known.package}" if known.package else "written anew from its description",
            *(f"as in the paper: {line}" for line in known.from_paper),
            *(f"chosen here: {line}" for line in known.choices),
            *(() if code in run else ("not run",)),
        ]
        facts += [(baseline.title if place == 0 else "", line) for place, line in enumerate(told)]
    caption = "What each system is here: what the paper says of it, and what it leaves open."
    return Section("systems", "The systems", (), (facts_table("systems", "Where each comes from", facts, caption),))


def _provenance_section(inputs: ComparedInputs) -> Section:
    caption = "Every figure of ours was made with these. A stand-in reader or embedder is named as what it is."
    table = facts_table("provenance", "What made these figures", list(inputs.report.provenance.items()), caption)
    return Section("provenance", "Provenance", (), (table,))
