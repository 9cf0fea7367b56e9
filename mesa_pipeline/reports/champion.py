"""What is said of a dataset's champion: a section of the report, and a page of its own for each night."""

from collections.abc import Sequence

from mesa_pipeline.evaluation.health import DomainHealth, Health
from mesa_pipeline.evaluation.nights import ChampionHistory, Changes, Handover, Night
from mesa_pipeline.evaluation.showing import Standing
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.champion_figure import DATE_CHARS, champion_figure
from mesa_pipeline.reports.document import Cell, Column, KeyFigure, Report, Row, Section, Table

SHOWN_NIGHTS = 30
MAX_LINES = 50
TITLE = "The champion, night by night"
SAME_EVIDENCE = "Nothing changed since it was crowned."
NEXT_STEPS = (
    "Read the changes above first: a setting or model that differs explains a drop on the same questions, and setting it back "
    "and running mesa nightly again shows whether it does.",
    "A drop on new or changed questions alone, where reading all five structures dropped as far, means that the new questions "
    "are harder, not that the policy chooses worse.",
    "mesa champion roll-back puts the policy before it back; mesa champion promote puts any frozen policy in its place. A "
    "challenger takes over by itself once it is shown to be better.",
)


def champion_section(history: ChampionHistory) -> Section:
    """The last night's verdict, the champion's figures by night, and every night in a line."""
    if not history.nights:
        return Section("champion", TITLE, ("There is no champion yet; find one with: mesa nightly",))
    figure = champion_figure(history.nights)
    items = (*((figure,) if figure else ()), nights_table(history.nights))
    return Section("champion", TITLE, (text.printable(history.nights[-1].verdict),), items, _handovers(history.handovers))


def night_report(dataset: str, history: ChampionHistory) -> Report:
    """A page on the last night: who reigns, whether it got worse, what changed, what to do. There must have been one."""
    night = history.nights[-1]
    sections = [
        Section("contest", "The challenger", (text.sentence(night.contest.reason),), (standings_table(night),)),
        *([_health_section(night.health)] if night.health else []),
        Section("changes", "What changed since the champion was crowned", *_changes(night.changes)),
        *([Section("next", "What to do", (), (), NEXT_STEPS)] if night.worse else []),
        champion_section(history),
    ]
    return Report(
        title=f"The champion of {text.printable(dataset)}",
        verdict=text.printable(night.verdict),
        notes=(f"The night of {night.at[:DATE_CHARS]}; comparisons with this champion so far: {night.contest.number}.",),
        key_figures=_key_figures(night),
        sections=tuple(sections),
        metrics=night.metrics,
    )


def nights_table(nights: Sequence[Night]) -> Table:
    """The latest nights, the last one first."""
    columns = (
        Column("Night", "left"),
        Column("Champion", "left"),
        Column("Score", unit="x100"),
        Column("Less all five", unit="worth x100"),
        Column("Challenger less champion", unit="worth x100"),
        Column("Decision", "left", wraps=True),
    )
    caption = (
        "Worth is score less the price of the tokens; intervals are clustered by episode. That of the challenger is as wide as "
        "the number of comparisons with the same champion asks for, so that no challenger takes over by luck of many nights."
    )
    rows = tuple(_night_row(night) for night in reversed(nights[-SHOWN_NIGHTS:]))
    return Table("champion-nights", "The latest nights", columns, rows, caption)


def standings_table(night: Night) -> Table:
    """Champion and challenger, each on the episodes that it was not made with."""
    columns = (
        Column("Policy", "left"),
        Column("Episodes"),
        Column("Score", unit="x100"),
        Column("Tokens"),
        Column("All five", unit="x100"),
        Column("All five", unit="tokens"),
        Column("Worth less all five", unit="x100"),
    )
    sides = (("champion", night.champion), ("challenger", night.challenger))
    rows = tuple(_standing_row(role, found) for role, found in sides if found)
    caption = (
        "Each on the episodes that it was neither trained nor selected on. The two are compared on those held out from both: "
        f"{text.plural(night.contest.episodes, 'episode')}, {text.plural(night.contest.questions, 'question')}."
    )
    return Table("champion-standings", "Champion and challenger", columns, rows, caption)


def health_table(health: Health) -> Table:
    """What the champion was compared with, and whether it is significantly worse."""
    columns = (Column("Compared with", "left"), Column("Episodes"), Column("Difference in worth", unit="x100"))
    compared = (
        ("reading all five structures, tonight", health.versus_all),
        ("itself when crowned, the same questions", health.same_questions),
        ("itself when crowned, new and changed questions against those of then", health.new_questions),
        ("reading all five structures, between the same new and old questions", health.all_on_new_questions),
    )
    rows = tuple(Row((Cell(name), Cell(_episodes(found)), Cell(_interval(found)))) for name, found in compared)
    confidence = next((found.confidence for _, found in compared if found), None)
    level = f" {text.confidence(round(confidence, 4))} intervals, so that together they err as one would." if confidence else ""
    caption = (
        f"Positive is better.{level} Of fewer than {text.plural(health.min_episodes, 'episode')} nothing is called worse. The "
        "last line is no comparison of the champion: it says how much of the one above lies in the questions."
    )
    return Table("champion-health", "The champion against then and against all five", columns, rows, caption)


def domains_table(domains: Sequence[DomainHealth]) -> Table:
    """The same by domain."""
    columns = (
        Column("Domain", "left"),
        Column("Episodes"),
        Column("Questions"),
        Column("Worth", unit="x100"),
        Column("Less all five", unit="x100"),
        Column("Less when crowned, same questions", unit="x100"),
    )
    rows = tuple(
        Row(
            (
                Cell(text.printable(domain.domain) or text.ABSENT),
                Cell(text.number(domain.episodes)),
                Cell(text.number(domain.questions)),
                Cell(text.score(domain.worth)),
                Cell(_interval(domain.versus_all)),
                Cell(_interval(domain.same_questions)),
            )
        )
        for domain in domains
    )
    caption = "Held-out episodes tonight. One episode has no interval."
    return Table("champion-domains", "By domain", columns, rows, caption)


def _health_section(health: Health) -> Section:
    verdict = f"Significantly worse {' and '.join(health.worse)}." if health.worse else "Not significantly worse in anything."
    return Section("health", "The champion tonight", (verdict,), (health_table(health), domains_table(health.domains)))


def _changes(changes: Changes) -> tuple[tuple[str, ...], tuple[Table, ...], tuple[str, ...]]:
    if changes.is_empty:
        return (SAME_EVIDENCE,), (), ()
    kinds = (("added", changes.added), ("changed", changes.changed), ("removed", changes.removed))
    counts = ", ".join(f"{text.plural(len(ids), 'episode')} {kind}" for kind, ids in kinds)
    lines = [text.printable(line) for line in changes.made_with]
    lines += [f"Episode {kind}: {text.printable(id)}" for kind, ids in kinds for id in ids]
    more = len(lines) - MAX_LINES
    said = (*lines[:MAX_LINES], *((f"and {text.number(more)} more",) if more > 0 else ()))
    return (f"{counts}; {text.number(len(changes.made_with))} of settings and models are not as then.",), (), said


def _key_figures(night: Night) -> tuple[KeyFigure, ...]:
    standing = night.challenger if night.contest.is_crowned else night.champion
    if standing is None:
        return ()
    figures = [
        KeyFigure(text.score(standing.score.mean), "score x100 of the champion", f"all five: {text.score(standing.all_score)}"),
        KeyFigure(text.number(standing.tokens), "evidence tokens a question", f"all five: {text.number(standing.all_tokens)}"),
    ]
    if night.champion and (found := night.contest.difference):
        figures.append(KeyFigure(text.difference(found.mean), "challenger less champion", text.interval(found.low, found.high)))
    return tuple(figures)


def _night_row(night: Night) -> Row:
    standing = night.challenger if night.contest.is_crowned else night.champion
    named = text.printable(standing.name, 40) if standing and night.tenure is not None else text.ABSENT
    difference = night.contest.difference if night.champion else None
    cells = (
        Cell(night.at[:DATE_CHARS]),
        Cell(named),
        Cell(text.score(standing.score.mean) if standing else text.ABSENT),
        Cell(_interval(standing.versus_all if standing else None)),
        Cell(_interval(difference)),
        Cell(night.contest.decision + (f"; worse {' and '.join(night.worse)}" if night.worse else "")),
    )
    return Row(cells, highlighted=night.contest.is_crowned)


def _standing_row(role: str, found: Standing) -> Row:
    cells = (
        Cell(f"{role}: {text.printable(found.name, 40)}"),
        Cell(text.number(found.episodes)),
        Cell(text.score(found.score.mean)),
        Cell(text.number(found.tokens)),
        Cell(text.score(found.all_score)),
        Cell(text.number(found.all_tokens)),
        Cell(_interval(found.versus_all)),
    )
    return Row(cells, highlighted=role == "champion")


def _handovers(handovers: Sequence[Handover]) -> tuple[str, ...]:
    return tuple(
        f"{handover.at[:DATE_CHARS]}: {text.printable(handover.name)} {handover.how}"
        + (f": {text.printable(handover.reason)}" if handover.reason else "")
        for handover in handovers[-MAX_LINES:]
    )


def _episodes(found: Interval | None) -> str:
    return text.number(found.clusters) if found else text.ABSENT


def _interval(found: Interval | None) -> str:
    if found is None:
        return text.ABSENT
    if found.clusters < 2:
        return text.difference(found.mean)
    return f"{text.difference(found.mean)} ({text.interval(found.low, found.high)})"
