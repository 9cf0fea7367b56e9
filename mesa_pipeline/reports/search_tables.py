"""Tables of a policy search. Scores and objectives are shown times a hundred."""

from collections.abc import Sequence

import numpy as np

from mesa_pipeline.evaluation.held_out import FROZEN_ROW, TestResult
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Cell, Column, Row, Table
from mesa_pipeline.reports.metrics import csv_text
from mesa_pipeline.reports.search_findings import INITIAL, Candidate, SearchFinding

SHOWN_CANDIDATES = 15
HYPOTHESIS_CHARS = 240
CANDIDATE_COLUMNS = (
    "seed",
    "candidate",
    "iteration",
    "slot",
    "direction",
    "status",
    "objective",
    "score",
    "tokens",
    "structures",
    "train_objective",
    "on_front",
)


def searches_table(searches: Sequence[SearchFinding]) -> Table:
    """What each search planned, tried and chose."""
    columns = (
        Column("Seed", "left"),
        Column("Frozen policy", "left", wraps=True),
        Column("Planned"),
        Column("Evaluated"),
        Column("Duplicates"),
        Column("Invalid"),
        Column("Under the front", unit="share"),
        Column("Bonus to spread"),
    )
    rows = tuple(
        Row(
            (
                Cell(str(found.seed), found.seed),
                Cell(_named(found.winner)),
                Cell(text.number(found.planned), found.planned),
                Cell(text.number(found.count("evaluated")), found.count("evaluated")),
                Cell(text.number(found.count("duplicate")), found.count("duplicate")),
                Cell(text.number(found.count("invalid")), found.count("invalid")),
                Cell(text.percent(found.hypervolume, 2), found.hypervolume),
                Cell(text.number(found.bonus_to_spread or np.nan, 1), found.bonus_to_spread),
            )
        )
        for found in searches
    )
    rules = ", ".join(sorted({found.rule for found in searches}))
    caption = (
        f"Chosen on validation by {rules}. Under the front: how much of the rectangle from no tokens to those of all five, and "
        "from score 0 to 100, lies under the archive's front. Bonus to spread: the mean exploration bonus as a multiple of the "
        "spread of the directions' values; far above 1 the directions take turns."
    )
    return Table("searches", "Each search", columns, rows, caption)


def inflation_table(searches: Sequence[SearchFinding], tests: Sequence[TestResult]) -> Table | None:
    """By how much validation, where the winner was picked, overstates it; ``None`` before a test."""
    figures = []
    for found in searches:
        test, everything = found.test_among(tests), found.by_id[INITIAL].worth
        if test is None or everything is None:
            continue
        tested = test.row(FROZEN_ROW)
        gained = test.validation.score - everything.score
        scores = test.validation.score, tested.evaluation.score, test.inflation
        figures.append((test.seed, (*scores, gained, tested.versus_all.mean, gained - tested.versus_all.mean)))
    if not figures:
        return None
    columns = (
        Column("Seed", "left"),
        Column("Score on validation", unit="x100"),
        Column("Score on test", unit="x100"),
        Column("Inflation", unit="x100"),
        Column("Gain over all, validation", unit="x100"),
        Column("Gain over all, test", unit="x100"),
        Column("Inflation of the gain", unit="x100"),
    )
    rows = [_inflation_row(str(seed), values) for seed, values in figures]
    means = [float(column) for column in np.mean([values for _, values in figures], axis=0)]
    rows.append(_inflation_row("mean", means, highlighted=True))
    caption = (
        "The frozen policy on the validation questions it was chosen on, and on the test questions. The two sets are not "
        "equally hard, which is part of the first difference; gains over reading all five on the same questions leave that out."
    )
    return Table("inflation", "The winner's score, where it was picked and where it was not", columns, tuple(rows), caption)


def _inflation_row(name: str, values: Sequence[float], highlighted: bool = False) -> Row:
    shown = [text.score(value) if place < 2 else text.difference(value) for place, value in enumerate(values)]
    return Row((Cell(name), *(Cell(cell, value) for cell, value in zip(shown, values, strict=True))), highlighted)


def candidates_table(found: SearchFinding) -> Table:
    """The best of the archive, with what their authors expected."""
    best = sorted(found.archive, key=lambda c: -c.worth.objective if c.worth else np.inf)[:SHOWN_CANDIDATES]
    columns = (
        Column("Candidate", "left"),
        Column("Objective", unit="x100"),
        Column("Score", unit="x100"),
        Column("Tokens", unit="per question"),
        Column("Structures", unit="per question"),
        Column("Objective on train", unit="x100"),
        Column("Front", "left"),
        Column("Hypothesis", "left", wraps=True),
    )
    rows = tuple(_candidate_row(candidate, candidate.id == found.chosen) for candidate in best)
    caption = (
        f"Split seed {found.seed}: the best {len(best)} of {text.number(len(found.archive))} policies "
        "in the archive, on validation. An objective on train far above that on validation is of a policy that learnt its "
        "training questions by heart."
    )
    return Table("candidates", "Best candidates", columns, rows, caption, sortable=True)


def _candidate_row(candidate: Candidate, chosen: bool) -> Row:
    objective, score, tokens, structures, train = _figures(candidate)
    cells = (
        Cell(_named(candidate)),
        Cell(text.score(objective), objective),
        Cell(text.score(score), score),
        Cell(text.number(tokens), tokens),
        Cell(text.number(structures, 2), structures),
        Cell(text.score(train), train),
        Cell("yes" if candidate.on_front else "", float(candidate.on_front)),
        Cell(text.printable(candidate.hypothesis, HYPOTHESIS_CHARS)),
    )
    return Row(cells, highlighted=chosen)


def candidates_csv(searches: Sequence[SearchFinding]) -> str:
    """One line a candidate, search by search, in the order tried."""
    rows = [
        (found.seed, c.id, c.iteration, c.slot, c.direction, c.status, *_figures(c), int(c.on_front))
        for found in searches
        for c in found.candidates
    ]
    return csv_text(CANDIDATE_COLUMNS, rows)


def readings_table(found: SearchFinding) -> Table:
    """What the archive offers at other prices of a token."""
    columns = (
        Column("Price of 10,000 tokens", unit="points of score x100"),
        Column("Best policy", "left"),
        Column("Score", unit="x100"),
        Column("Tokens", unit="per question"),
        Column("Structures", unit="per question"),
    )
    rows = []
    for reading in found.readings:
        worth = found.by_id[reading.candidate].worth
        if worth is None:
            continue
        cells = (
            Cell(text.number(1e6 * reading.lambda_, 1), reading.lambda_),
            Cell(_named(found.by_id[reading.candidate])),
            Cell(text.score(worth.score), worth.score),
            Cell(text.number(worth.tokens), worth.tokens),
            Cell(text.number(worth.structures, 2), worth.structures),
        )
        rows.append(Row(cells, highlighted=reading.lambda_ == found.lambda_))
    caption = (
        f"Split seed {found.seed}, validation, read off the archive without another search; the price searched with is marked. "
        "The archive was bred for that price, so a search of its own may find better at another."
    )
    return Table("readings", "The best policy at other prices of a token", columns, tuple(rows), caption)


def lineage_table(found: SearchFinding) -> Table:
    """The winner and what it was made from."""
    columns = (
        Column("Candidate", "left"),
        Column("Made from", "left", wraps=True),
        Column("Objective", unit="x100"),
        Column("Hypothesis", "left", wraps=True),
    )
    rows = []
    for candidate in found.lineage():
        objective = candidate.worth.objective if candidate.worth else np.nan
        cells = (
            Cell(_named(candidate)),
            Cell(text.printable(", ".join(candidate.parents)) or text.ABSENT),
            Cell(text.score(objective), objective),
            Cell(text.printable(candidate.hypothesis, HYPOTHESIS_CHARS)),
        )
        rows.append(Row(cells, highlighted=candidate.id == found.chosen))
    caption = (
        "From the winner back to the policy every search starts with. A candidate made from none was a fresh idea along its "
        "direction. Parents are named by the candidate itself."
    )
    return Table("lineage", "Lineage of the winner", columns, tuple(rows), caption)


def _named(candidate: Candidate) -> str:
    return f"{candidate.id} {candidate.direction}" if candidate.direction else candidate.id


def _figures(candidate: Candidate) -> tuple[float, float, float, float, float]:
    """Objective, score, tokens, structures and the objective on train; NaN for an invalid candidate."""
    worth = candidate.worth
    if worth is None:
        return (np.nan,) * 5
    return worth.objective, worth.score, worth.tokens, worth.structures, worth.train_objective
