"""The report's tables, each a pure function of plain findings. Scores are shown times a hundred."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.statistics import MeanStd
from mesa_pipeline.reports import text
from mesa_pipeline.reports.cells import difference_cells
from mesa_pipeline.reports.document import Cell, Column, Row, Table
from mesa_pipeline.reports.findings import OPTIMISM, GroupFinding, SubsetFinding
from mesa_pipeline.reports.standings import Standing

NAME_CHARS = 60


def policies_table(found: Sequence[Standing]) -> Table:
    """Every policy on held-out episodes: score, cost and its difference to reading all five."""
    level = text.confidence(found[0].confidence)
    seeds = max(standing.seeds for standing in found)
    unscored = sum(standing.unscored for standing in found)
    columns = (
        Column("Policy", "left"),
        Column("Score", unit="x100"),
        Column("Tokens", unit="per question"),
        Column("Structures", unit="per question"),
        Column("Difference to all", unit="x100"),
        Column("Interval", unit=level),
        *((Column("Seeds"),) if any(standing.seeds != seeds for standing in found) else ()),
    )
    rows = tuple(_standing_row(standing, len(columns)) for standing in found)
    over = (
        f"mean ± sample standard deviation over {seeds} split seeds" if seeds > 1 else "one split seed, so no spread over seeds"
    )
    averaged = ", its ends averaged over seeds" if seeds > 1 else ""
    caption = (
        f"Test questions only, {_count_range(found)} per seed; {over}. The difference is paired by question; its {level} "
        f"bootstrap interval resamples whole episodes{averaged}. Oracle picks each question's best subset with hindsight: an "
        f"upper bound. {_unscored_note(unscored, 'test outcomes')}"
    )
    return Table("policies", "Policies on held-out episodes", columns, rows, caption, sortable=True)


def _standing_row(standing: Standing, width: int) -> Row:
    is_all = standing.kind == "all"
    cells = (
        _policy_cell(standing),
        _spread_cell(standing.score, 100.0, 2),
        _spread_cell(standing.tokens, 1.0, 0),
        Cell(text.number(standing.structures.mean, 2), standing.structures.mean),
        Cell(text.ABSENT) if is_all else _spread_cell(standing.difference, 100.0, 2, signed=True),
        Cell(text.ABSENT if is_all else text.interval(standing.low, standing.high), None if is_all else standing.low),
        Cell(text.number(standing.seeds), standing.seeds),
    )
    return Row(cells[:width], highlighted=standing.kind == "frozen")


def _policy_cell(standing: Standing) -> Cell:
    name = text.printable(standing.name, NAME_CHARS)
    if standing.kind == "single" and name in subsets.STRUCTURE_NAMES:
        return Cell(f"{name} {subsets.STRUCTURE_NAMES[name]}", structures=(name,))
    return Cell(name, structures=subsets.STRUCTURE_CODES if standing.kind == "all" else ())


def _spread_cell(value: MeanStd, scale: float, decimals: int, signed: bool = False) -> Cell:
    shown = text.number(scale * value.mean, decimals, signed)
    return Cell(shown if value.std is None else f"{shown} ± {text.number(scale * value.std, decimals)}", value.mean)


def _count_range(found: Sequence[Standing]) -> str:
    counts = sorted({round(standing.questions / standing.seeds) for standing in found})
    return text.number(counts[0]) if len(counts) == 1 else f"{text.number(counts[0])} to {text.number(counts[-1])}"


def subsets_table(findings: Sequence[SubsetFinding], questions: int) -> Table:
    """The 31 subsets: score, cost and rank."""
    columns = (
        Column("Rank"),
        Column("Subset", "left"),
        Column("Structures"),
        Column("Score", unit="x100"),
        Column("Tokens", unit="per question"),
        Column("Score per 1,000 tokens"),
        Column("Pareto front", "left"),
        Column("Unscored", unit="questions"),
    )
    caption = (
        f"Mean over all {text.plural(questions, 'swept question')}, train, validation and test together, from "
        "the outcome table "
        f"alone: no policy is involved. {OPTIMISM} {_unscored_note(sum(f.unscored for f in findings), 'outcomes')}"
    )
    rows = tuple(_subset_row(finding) for finding in findings)
    return Table("subsets", "Every subset, best first", columns, rows, caption, sortable=True)


def _subset_row(finding: SubsetFinding) -> Row:
    worth = 1e5 * finding.score / finding.tokens if finding.tokens > 0 else np.nan
    cells = (
        Cell(text.number(finding.rank) if finding.rank else text.ABSENT, finding.rank or np.inf),
        subset_cell(finding.mask),
        Cell(str(subsets.size(finding.mask)), subsets.size(finding.mask)),
        Cell(text.score(finding.score), finding.score),
        Cell(text.number(finding.tokens), finding.tokens),
        Cell(text.number(worth, 2), worth),
        Cell("on front" if finding.on_front else "", float(finding.on_front)),
        Cell(text.number(finding.unscored), finding.unscored),
    )
    return Row(cells, highlighted=finding.mask == subsets.FULL_SUBSET)


def winners_table(groups: Sequence[GroupFinding], name: str, noun: str) -> Table:
    """The best subset of each group, and its margin over reading all five with its interval."""
    level = text.confidence(groups[0].intervals[groups[0].winner].confidence)
    columns = (
        Column(noun.capitalize(), "left"),
        Column("Questions"),
        Column("Episodes"),
        Column("Best subset", "left"),
        Column("Ties"),
        Column("Score", unit="x100"),
        Column("All five", unit="x100"),
        Column("Margin over all", unit="x100"),
        Column("Interval", unit=level),
    )
    rows = tuple(
        Row(
            (
                Cell(text.printable(group.name, NAME_CHARS)),
                Cell(text.number(group.questions), group.questions),
                Cell(text.number(group.episodes), group.episodes),
                subset_cell(group.winner),
                Cell(text.number(group.tied), group.tied),
                Cell(text.score(group.winning_score), group.winning_score),
                Cell(text.score(group.full_score), group.full_score),
                *difference_cells(group.margin),
            )
        )
        for group in groups
    )
    caption = (
        f"Over all swept questions of each {noun}. {OPTIMISM} The fewer the questions, the more so. Ties counts "
        "other subsets "
        "with the same score; the one with fewest tokens is shown. The margin is paired by question, over those scored under "
        "both; its bootstrap interval resamples whole episodes and does not cover that the subset was chosen on them."
    )
    return Table(name, f"Winners by {noun}", columns, rows, caption)


def structures_table(findings: Sequence[SubsetFinding], build_seconds: Mapping[str, Sequence[float]]) -> Table:
    """What each structure gives alone, and what building it takes."""
    by_mask = {finding.mask: finding for finding in findings}
    columns = (
        Column("Structure", "left"),
        Column("Score alone", unit="x100"),
        Column("Tokens", unit="per question"),
        Column("Episodes built"),
        Column("Median", unit="s"),
        Column("Mean", unit="s"),
        Column("Longest", unit="s"),
        Column("All episodes", unit="s"),
    )
    rows = []
    for code in subsets.STRUCTURE_CODES:
        alone = by_mask[subsets.encode([code])]
        taken = np.array(build_seconds.get(code, ()), dtype=float)
        times = [np.median(taken), taken.mean(), taken.max(), taken.sum()] if taken.size else [np.nan] * 4
        cells = (
            Cell(subsets.STRUCTURE_NAMES[code], structures=(code,)),
            Cell(text.score(alone.score), alone.score),
            Cell(text.number(alone.tokens), alone.tokens),
            Cell(text.number(taken.size), taken.size),
            *(Cell(text.seconds(float(value)), float(value)) for value in times),
        )
        rows.append(Row(cells))
    caption = (
        "Score and evidence tokens of each structure read alone, over all swept questions; wall seconds to "
        "build the memory of an "
        "episode."
    )
    return Table("structures", "The five structures", columns, tuple(rows), caption)


def choices_table(choices: Sequence[int]) -> Table:
    """How often each subset was chosen, and so each structure read."""
    counts = Counter(choices)
    total = len(choices)
    rows = tuple(
        Row(
            (
                subset_cell(mask),
                Cell(text.number(counts[mask]), counts[mask]),
                Cell(text.percent(counts[mask] / total, 1), counts[mask]),
            )
        )
        for mask in sorted(counts, key=lambda mask: (-counts[mask], mask))
    )
    reads = Counter(code for mask in choices for code in subsets.decode(mask))
    shares = "; ".join(
        f"{subsets.STRUCTURE_NAMES[code]} {text.percent(reads[code] / total)}" for code in subsets.STRUCTURE_CODES
    )
    over = f"Over {text.plural(total, 'test question')}, all split seeds together."
    caption = f"{over} Share of questions that read each structure: {shares}."
    return Table(
        "choices",
        "Subsets the frozen policy chose",
        (Column("Subset", "left"), Column("Questions"), Column("Share")),
        rows,
        caption,
    )


def subset_cell(mask: int) -> Cell:
    """A subset by its label, with its structures for drawing; sorted by size."""
    return Cell(subsets.label(mask), 100.0 * subsets.size(mask) + mask, subsets.decode(mask))


def facts_table(name: str, title: str, facts: Sequence[tuple[str, str]], caption: str) -> Table:
    """Names and values in two columns."""
    rows = tuple(Row((Cell(text.printable(key)), Cell(text.printable(value)))) for key, value in facts)
    return Table(name, title, (Column("What", "left"), Column("Value", "left", wraps=True)), rows, caption)


def _unscored_note(count: int, noun: str) -> str:
    return (
        f"{text.number(count)} unscored {noun} are left out of the means, never counted as wrong."
        if count
        else f"No {noun} are unscored."
    )
