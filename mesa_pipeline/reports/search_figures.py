"""Drawings of a policy search: objective by candidate, arms over time, and the archive's score against tokens."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Figure
from mesa_pipeline.reports.placement import Label, place_labels
from mesa_pipeline.reports.search_findings import INITIAL, SLOTS, Candidate, SearchFinding, Worth
from mesa_pipeline.reports.svg import to_svg
from mesa_pipeline.reports.theme import ALL_COLOUR, INK, MARKER_EDGE, MUTED, POLICY_COLOUR, SUBSET_COLOURS, canvas

SLOT_COLOURS = dict(zip(SLOTS, (SUBSET_COLOURS[3], SUBSET_COLOURS[2], SUBSET_COLOURS[1]), strict=True))
SLOT_MARKERS = dict(zip(SLOTS, ("o", "^", "s"), strict=True))
REACH_BELOW = 4.0
"""How far the axis goes below the middle candidate, as a multiple of how far the best is above it; ``all`` is always shown."""
SLOT_OFFSET = 0.22
CANDIDATE_AXIS = "candidate, in the order tried"


def objective_figure(found: SearchFinding) -> Figure:
    """Validation objective of every candidate, and of the best so far (paper, Figure 5a)."""
    name, description = f"search-objective-{found.seed}", describe_objective(found)
    with canvas(8.4, 4.2, name) as drawing:
        axes = drawing.subplots()
        draw_objective(axes, found)
        axes.set_xlabel(CANDIDATE_AXIS)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, fontsize=9)
        svg = to_svg(drawing, name, description)
    return Figure(name, "Objective of each candidate", svg, objective_caption(found), description)


def describe_objective(found: SearchFinding) -> str:
    """What ``draw_objective`` shows, in words."""
    best = _best_so_far(found)
    return (
        f"Validation objective x100 of {len(found.tried)} candidates: all five structures {text.score(best[0])}, "
        f"best in the end {text.score(best[-1])}"
    )


def objective_caption(found: SearchFinding) -> str:
    """How to read ``draw_objective``."""
    return (
        f"Split seed {found.seed}. Score less {found.lambda_:g} a token, x100, on the validation questions. Filled: entered "
        "the archive; hollow: chose exactly as an earlier candidate; a cross at the lower edge: invalid. A candidate worse "
        "than the axis reaches stands at its lower edge. The best of many is partly luck; test questions say how much."
    )


def draw_objective(axes: Axes, found: SearchFinding) -> None:
    """Objective of every candidate by its place in the order tried, from 1, and of the best so far."""
    tried, best = found.tried, _best_so_far(found)
    places = {candidate.id: place for place, candidate in enumerate(tried, 1)}
    axes.axhline(100 * best[0], color=ALL_COLOUR, linewidth=1, linestyle="--", label="all five structures")
    floor = 100 * _floor(best[0], [candidate.worth.objective for candidate in tried if candidate.worth])
    _draw_candidates(axes, tried, places, floor)
    axes.step(range(len(best)), [100 * value for value in best], where="post", color=INK, linewidth=1.6, label="best so far")
    if found.chosen in places:
        winner = places[found.chosen], 100 * _worth(found.winner).objective
        axes.plot(*winner, "*", color=POLICY_COLOUR, markersize=16, markeredgecolor=MARKER_EDGE, label="frozen", zorder=6)
    axes.set_xlim(-1, len(tried) + 1)
    axes.margins(y=0.06)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("validation objective x100")


def _draw_candidates(axes: Axes, tried: Sequence[Candidate], places: dict[str, int], floor: float) -> None:
    for slot in SLOTS:
        colour, marker = SLOT_COLOURS[slot], SLOT_MARKERS[slot]
        mine = [candidate for candidate in tried if candidate.slot == slot]
        for status, face in (("evaluated", colour), ("duplicate", "none")):
            drawn = [candidate for candidate in mine if candidate.status == status]
            heights = [max(floor, 100 * _worth(candidate).objective) for candidate in drawn]
            axes.plot(
                [places[candidate.id] for candidate in drawn],
                heights,
                marker,
                color=colour,
                markerfacecolor=face,
                markersize=5.5,
                label=slot if status == "evaluated" else None,
            )
    invalid = [places[candidate.id] for candidate in tried if candidate.status == "invalid"]
    if invalid:
        axes.plot(invalid, [floor] * len(invalid), "x", color=MUTED, markersize=6, label="invalid")


def _floor(start: float, values: Sequence[float]) -> float:
    """Where the axis begins, so that one hopeless candidate does not press all others into a line."""
    middle, best = float(np.median([start, *values])), max([start, *values])
    return min(start, max(min([start, *values]), middle - REACH_BELOW * (best - middle)))


def _best_so_far(found: SearchFinding) -> list[float]:
    """Highest objective after each candidate, that of ``all`` first."""
    start = _worth(found.by_id[INITIAL]).objective
    values = [candidate.worth.objective if candidate.worth else -np.inf for candidate in found.tried]
    return [float(value) for value in np.maximum.accumulate([start, *values])]


def arms_figure(found: SearchFinding) -> Figure:
    """When each direction was followed and why, and what its candidates were worth."""
    name = f"search-arms-{found.seed}"
    tried = [candidate for candidate in found.candidates if candidate.direction]
    rows = {arm.direction: row for row, arm in enumerate(found.arms)}
    description = "Candidates evaluated by direction: " + "; ".join(f"{arm.direction} {arm.pulls}" for arm in found.arms)
    with canvas(8.4, 1.3 + 0.36 * len(rows), name) as drawing:
        left, right = drawing.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        for slot_place, slot in enumerate(SLOTS):
            mine = [candidate for candidate in tried if candidate.slot == slot]
            _draw_turns(left, mine, rows, (slot_place - 1) * SLOT_OFFSET)
        for arm in found.arms:
            values = [100 * _worth(c).objective for c in tried if c.direction == arm.direction and c.status == "evaluated"]
            right.plot(values, [rows[arm.direction]] * len(values), "|", color=MUTED, markersize=9)
            if values:
                right.plot(100 * arm.value, rows[arm.direction], "D", color=INK, markersize=5.5)
        left.set_yticks(list(rows.values()), [f"{arm.direction} ({arm.pulls})" for arm in found.arms], color=INK)
        left.invert_yaxis()
        left.set_xlabel("iteration")
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        if tried:
            left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=9)
        right.set_xlabel("validation objective x100")
        for axes in (left, right):
            axes.spines["left"].set_visible(False)
        svg = to_svg(drawing, name, description)
    ratio = "" if found.bonus_to_spread is None else f" Here it was {found.bonus_to_spread:.1f} times as large."
    caption = (
        f"Split seed {found.seed}. Left: the direction each slot followed; filled entered the archive, hollow chose as an "
        "earlier candidate, a cross was invalid; in brackets the candidates counted. Right: what they were worth, a diamond at "
        f"the value the schedule goes by. A bonus far above the spread of those values makes it take turns.{ratio}"
    )
    return Figure(name, "Directions over time", svg, caption, description)


def _draw_turns(axes: Axes, mine: Sequence[Candidate], rows: dict[str, int], offset: float) -> None:
    for status in ("evaluated", "duplicate", "invalid"):
        drawn = [candidate for candidate in mine if candidate.status == status and candidate.direction in rows]
        if not drawn:
            continue
        slot = str(drawn[0].slot)
        axes.plot(
            [candidate.iteration for candidate in drawn],
            [rows[str(candidate.direction)] + offset for candidate in drawn],
            "x" if status == "invalid" else SLOT_MARKERS[slot],
            color=SLOT_COLOURS[slot],
            markerfacecolor=SLOT_COLOURS[slot] if status == "evaluated" else "none",
            markersize=5,
            label=slot if status == "evaluated" else None,
        )


def archive_figure(found: SearchFinding) -> Figure:
    """Score against tokens of the whole archive, its front, and the chosen one."""
    name = f"search-archive-{found.seed}"
    front = sorted((c for c in found.archive if c.on_front), key=lambda candidate: _worth(candidate).tokens)
    description = "Score against tokens of the archive. Front: " + "; ".join(
        f"{candidate.id} {text.score(_worth(candidate).score, 1)} for {text.number(_worth(candidate).tokens)} tokens"
        for candidate in front
    )
    points = [_point(candidate) for candidate in found.archive]
    with canvas(7.6, 4.6, name) as drawing:
        axes = drawing.subplots()
        for slot in SLOTS:
            mine = [_point(candidate) for candidate in found.archive if candidate.slot == slot]
            if mine:
                axes.plot(*zip(*mine, strict=True), SLOT_MARKERS[slot], color=SLOT_COLOURS[slot], markersize=5.5, label=slot)
        stairs = [*(_point(candidate) for candidate in front), (max(x for x, _ in points), _point(front[-1])[1])]
        axes.step(*zip(*stairs, strict=True), where="post", color=INK, linewidth=1, label="front")
        initial, winner = _point(found.by_id[INITIAL]), _point(found.winner)
        axes.plot(*initial, "D", color=ALL_COLOUR, markersize=9, label="all five")
        axes.plot(*winner, "*", color=POLICY_COLOUR, markersize=17, markeredgecolor=MARKER_EDGE, label="frozen", zorder=6)
        axes.set_xlabel("evidence tokens of a question")
        axes.set_ylabel("validation score x100")
        axes.xaxis.set_major_formatter(lambda value, _position: text.number(value))
        axes.margins(0.08, 0.1)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=6, fontsize=9)
        others = dict.fromkeys(
            reading.candidate for reading in found.readings if reading.candidate not in (INITIAL, found.chosen)
        )
        labels = [
            Label(*winner, f"frozen: {found.chosen}", POLICY_COLOUR, bold=True),
            Label(*initial, "all five", ALL_COLOUR, bold=True),
            *(Label(*_point(found.by_id[id]), id, INK) for id in others),
        ]
        place_labels(drawing, axes, labels, points)
        svg = to_svg(drawing, name, description)
    caption = (
        f"Split seed {found.seed}, validation questions. Up and to the left is better. For any price of a token the best "
        "policy is on the front, so another price needs no new search; those of the prices below are named."
    )
    return Figure(name, "The archive: score against tokens", svg, caption, description)


def _point(candidate: Candidate) -> tuple[float, float]:
    worth = _worth(candidate)
    return worth.tokens, 100 * worth.score


def _worth(candidate: Candidate) -> Worth:
    if candidate.worth is None:
        raise ValueError(f"{candidate.id} is invalid and was never evaluated")
    return candidate.worth
