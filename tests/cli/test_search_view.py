"""What a person sees of a search while it runs."""

import io

import pytest
from rich.console import Console

from mesa_pipeline.cli.progress import BarProgress, progress_bars
from mesa_pipeline.cli.search_view import LineSearch, LiveSearch
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.search.archive import Archive
from mesa_pipeline.search.loop import SearchPlan, SearchProgress
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics, Rejection

PLAN = SearchPlan(seed=3, iterations=30, slots=3, proposer="template", directions=2)
ARMS = (
    ArmStatistics("lexical-rules", pulls=2, value=0.2412, bonus=0.054, invalid=1, duplicates=1),
    ArmStatistics("redundancy-complementarity", pulls=0, value=0.25, bonus=0.1),
)


def entry(id: str, objective: float, direction: str | None = None) -> ArchiveEntry:
    worth = Evaluation(id, "executable", 10, objective + 0.003, 3000.0, 2.0, objective, 0)
    return ArchiveEntry(id, 1, None, direction, (), "", "", worth, worth, id)


def progress(iteration: int = 7) -> SearchProgress:
    rejections = (
        Rejection("03-explore", 3, "lexical-rules", "chooses exactly as all", "all", ""),
        Rejection("04-explore", 4, "lexical-rules", "it failed", None, ""),
    )
    archive = Archive((entry("all", 0.2), entry("01-explore", 0.25, "lexical-rules")), rejections)
    return SearchProgress(PLAN, iteration, archive, ARMS)


def console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=False, highlight=False)


def drawn(width: int) -> list[str]:
    at = console(width)
    view = LiveSearch(BarProgress(progress_bars(at)), at)
    view.watch(progress())
    at.file = io.StringIO()
    at.print(view)
    return at.file.getvalue().splitlines()


def test_it_shows_what_was_tried_the_frontier_and_every_arm():
    tried, best, heading, first, second = drawn(100)
    assert tried == "3 candidates: 1 evaluated, 1 duplicates, 1 invalid"
    assert best == "best on validation: 01-explore (lexical-rules), score 25.30, 3,000 tokens, objective 25.00"
    assert heading.split() == ["direction", "pulls", "mean", "bonus", "invalid", "duplicates"]
    assert first.split() == ["lexical-rules", "2", "24.12", "5.40", "1", "1"]
    assert second.split()[:3] == ["redundancy-complementarity", "0", "-"], "an arm without pulls has no mean"


@pytest.mark.parametrize("width", [24, 40, 65, 66, 80, 200])
def test_it_is_never_wider_than_the_terminal(width: int):
    assert max(len(line) for line in drawn(width)) <= width


def test_the_plan_is_said_once_before_anything_is_spent():
    at = console(200)
    view = LineSearch(at)
    for iteration in range(3):
        view.watch(progress(iteration))
    said = at.file.getvalue()  # type: ignore[attr-defined]
    plan = "search, split seed 3: 30 iterations x 3 slots = 90 candidates, template proposer, 2 directions"
    assert said == plan + "\n"


def test_nothing_is_drawn_where_nothing_is_searched():
    at = console(80)
    at.print(LiveSearch(BarProgress(progress_bars(at)), at))
    assert at.file.getvalue().strip() == ""  # type: ignore[attr-defined]
