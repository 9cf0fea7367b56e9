"""The report's section on what each structure is worth and what choosing better could gain."""

from collections.abc import Sequence
from typing import TypeVar

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.credit import GroupCredit
from mesa_pipeline.evaluation.credit_summary import CreditSummary
from mesa_pipeline.evaluation.regret import Decomposition, GroupRegret, Rung
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports import text
from mesa_pipeline.reports.credit_figures import credit_figure, interactions_figure, regret_figure
from mesa_pipeline.reports.document import Cell, Column, Row, Section, Table

ANCHOR, TITLE = "credit", "What each structure is worth"
MAX_GROUPS = 12
"""Groups of one kind shown, those with most questions."""
Group = TypeVar("Group", GroupCredit, GroupRegret)
NOT_YET = (
    "Nothing to show before a policy has been tested: what is known of test questions must not reach the search for a policy."
)


def credit_section(found: CreditSummary | None) -> Section:
    """Figures and tables of credit and regret; a sentence where there has been no test."""
    if found is None:
        return Section(ANCHOR, TITLE, (NOT_YET,))
    blocks = [[found.overall], *(block for block in (_largest(found.capabilities), _largest(found.domains)) if block)]
    items = (
        credit_figure(blocks),
        credit_table(found.overall),
        interactions_figure(found.overall),
        regret_figure(found.regret),
        regret_table(found.regret),
        *((group_regret_table(found.regret.groups),) if found.regret.groups else ()),
    )
    return Section(ANCHOR, TITLE, (_enough(found), *_left_out(found)), items)


def _largest(groups: Sequence[Group]) -> list[Group]:
    largest = sorted(groups, key=lambda group: (-group.questions, group.name))[:MAX_GROUPS]
    return sorted(largest, key=lambda group: group.name)


def _enough(found: CreditSummary) -> str:
    one, two = found.enough[1], found.enough[2]
    return (
        f"For {text.percent(one)} of {text.plural(found.overall.questions, 'question')}, all that were swept, one structure "
        f"alone scores at least as well as all five, for another {text.percent(two)} two do, for {text.percent(1 - one - two)} "
        "it takes more. Which one it is, is the question a policy has to answer."
    )


def _left_out(found: CreditSummary) -> tuple[str, ...]:
    if not found.left_out:
        return ()
    return (f"{text.plural(found.left_out, 'question')} unscored under some subset are left out of this section.",)


def credit_table(group: GroupCredit) -> Table:
    """What each structure adds, and where it harms."""
    level = text.confidence(group.shapley[0].confidence)
    columns = (
        Column("Structure", "left"),
        Column("Shapley value", unit="x100"),
        Column("Interval", unit=level),
        Column("Left out of all", unit="x100"),
        Column("Interval", unit=level),
        Column("Added to a subset", unit="x100"),
        Column("Interval", unit=level),
        Column("Harms all", unit="questions"),
        Column("Harms", unit="subsets"),
    )
    rows = tuple(
        Row(
            (
                Cell(subsets.STRUCTURE_NAMES[code], structures=(code,)),
                *_estimate(group.shapley[k]),
                *_estimate(group.leave_one_out[k]),
                *_estimate(group.add_one[k]),
                Cell(text.percent(group.harmful_to_all[k]), group.harmful_to_all[k]),
                Cell(text.percent(group.harmful[k]), group.harmful[k]),
            )
        )
        for k, code in enumerate(subsets.STRUCTURE_CODES)
    )
    caption = (
        f"Over {text.plural(group.questions, 'question')} of {text.plural(group.episodes, 'episode')}. Left out of all: what "
        "the score of all five loses without the structure; below zero, all five do better without it. Added to a subset: mean "
        "gain over the 15 non-empty subsets without it. Harms all: share of questions on which all five score less than "
        "without it. Harms: share of those 15 subsets that score less with it than without, mean over questions. Token price "
        "is not counted here."
    )
    return Table("credit", "What each structure adds", columns, rows, caption)


def regret_table(found: Decomposition) -> Table:
    """Score, cost and gain of each way of choosing."""
    level = text.confidence(found.rungs[0].gain.confidence)
    columns = (
        Column("Chosen by", "left"),
        Column("Measured", "left"),
        Column("Score", unit="x100"),
        Column("Tokens", unit="per question"),
        Column("Gain over all", unit="x100"),
        Column("Interval", unit=level),
    )
    caption = (
        f"Over the test questions of every tested split seed, {text.number(found.questions)} in all; a question tested "
        "several times counts as often, and its episode is one cluster. Gain is in score less token price."
    )
    return Table("regret", "What choosing better could gain", columns, tuple(map(_rung_row, found.rungs)), caption)


def _rung_row(rung: Rung) -> Row:
    is_all = rung.kind == "all"
    cells = (
        Cell(rung.name),
        Cell({"all": text.ABSENT, "policy": "held-out"}.get(rung.kind, rung.kind)),
        Cell(text.score(rung.score), rung.score),
        Cell(text.number(rung.tokens), rung.tokens),
        *((Cell(text.ABSENT), Cell(text.ABSENT)) if is_all else _estimate(rung.gain)),
    )
    return Row(cells, highlighted=rung.kind == "policy")


def group_regret_table(groups: Sequence[GroupRegret]) -> Table:
    """Where the policy loses most: regret by domain and by capability."""
    columns = (
        Column("By", "left"),
        Column("Group", "left"),
        Column("Questions"),
        Column("Regret of the frozen policy", unit="x100"),
        Column("Regret of all five", unit="x100"),
    )
    kinds = dict.fromkeys(group.kind for group in groups)
    shown = [group for kind in kinds for group in _largest([group for group in groups if group.kind == kind])]
    rows = tuple(
        Row(
            (
                Cell(group.kind),
                Cell(text.printable(group.name)),
                Cell(text.number(group.questions), group.questions),
                Cell(text.score(group.policy), group.policy),
                Cell(text.score(group.everything), group.everything),
            )
        )
        for group in shown
    )
    caption = (
        "Regret: by how much each question's best subset, in score less token price, is ahead of what was chosen; mean over "
        "the test questions of every tested split seed. The best is known with hindsight, so no policy reaches 0: compare the "
        f"two columns, and groups with each other. At most {MAX_GROUPS} groups of a kind, those with most questions."
    )
    return Table("group-regret", "Where most is lost", columns, rows, caption)


def _estimate(value: Interval) -> tuple[Cell, Cell]:
    return Cell(text.difference(value.mean), value.mean), Cell(text.interval(value.low, value.high), value.low)
