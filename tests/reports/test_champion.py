"""What is said of the champion: figures as they are, foreign text harmless, nothing where nothing is known."""

import re
from dataclasses import replace

import pytest

from mesa_pipeline.evaluation.contest import Contest
from mesa_pipeline.evaluation.health import DomainHealth, Health
from mesa_pipeline.evaluation.nights import ChampionHistory, Changes, Handover, Night
from mesa_pipeline.evaluation.showing import Standing
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.reports.champion import champion_section, night_report, nights_table
from mesa_pipeline.reports.champion_figure import champion_figure
from mesa_pipeline.reports.document import Table
from mesa_pipeline.reports.html import render_html
from mesa_pipeline.reports.markdown import render_markdown

HOSTILE = "<script>alert(1)</script>|\x00\u202e{x}\ud800"


def interval(mean: float, low: float, high: float, clusters: int = 9) -> Interval:
    return Interval(mean, low, high, 0.95, clusters)


def standing(name: str, score: float) -> Standing:
    around = interval(score, score - 0.1, score + 0.1)
    return Standing(name, "f" * 64, 9, 36, around, 1200.0, around, 0.3, 2000.0, interval(0.05, 0.01, 0.09))


FIRST = Night(
    at="2030-01-01T03:00:00+00:00",
    key="one",
    tenure=1,
    champion=None,
    challenger=standing("first", 0.4),
    contest=Contest("first", "there was no champion", 9, 36),
    health=None,
    changes=Changes(),
)
WORSE = Night(
    at="2030-01-02T03:00:00+00:00",
    key="two",
    tenure=1,
    champion=standing("first", 0.2),
    challenger=standing("second", 0.3),
    contest=Contest("kept", "the challenger is not shown to be better", 9, 36, 1, interval(0.1, -0.02, 0.22)),
    health=Health(
        versus_all=interval(-0.1, -0.15, -0.05),
        same_questions=interval(0.0, 0.0, 0.0),
        new_questions=None,
        all_on_new_questions=None,
        domains=(DomainHealth("web", 1, 4, 0.2, interval(-0.1, -0.1, -0.1, 1), None),),
        min_episodes=8,
    ),
    changes=Changes(added=("new",), made_with=("structures.raw.top_k: 3 -> 1",)),
)
HISTORY = ChampionHistory((FIRST, WORSE), (Handover("2030-01-03T08:00:00+00:00", 2, "by hand", "third", "because"),))


def test_a_night_in_which_the_champion_got_worse_says_so_and_what_to_do():
    report = night_report("synthetic", HISTORY)
    page = render_markdown(report)
    (changes,) = (section for section in report.sections if section.anchor == "changes")
    assert "significantly worse than reading all five structures" in page
    assert changes.lines == ("structures.raw.top_k: 3 -> 1", "Episode added: new")
    assert "mesa champion roll-back" in page
    assert "−10.00 (−15.00 to −5.00)" in page


def test_a_night_without_trouble_has_nothing_to_do():
    compared = replace(FIRST, contest=replace(FIRST.contest, difference=Interval(0.02, 0.01, 0.03, 0.95, 9)))
    report = night_report("synthetic", ChampionHistory((compared,)))
    assert "challenger less champion" not in [figure.meaning for figure in report.key_figures]
    page = render_markdown(report)
    assert "There was no champion" in page
    assert "there was no champion" not in page
    assert "What to do" not in page


def test_the_latest_night_stands_first_and_a_new_champion_is_marked():
    table = nights_table(HISTORY.nights)
    assert [row.cells[0].text for row in table.rows] == ["2030-01-02", "2030-01-01"]
    assert [row.highlighted for row in table.rows] == [False, True]
    assert table.rows[0].cells[4].text == "+10.00 (−2.00 to +22.00)"
    assert table.rows[1].cells[4].text == "–"


def test_the_figure_shows_who_reigned_each_night():
    figure = champion_figure(HISTORY.nights)
    assert figure is not None
    assert "2030-01-01 40.0; 2030-01-02 20.0" in figure.description
    assert re.findall(r">(2030-\d\d-\d\d)<", figure.svg) == ["2030-01-02", "2030-01-01"]
    assert champion_figure([replace(FIRST, tenure=None, challenger=None)]) is None
    assert champion_figure(HISTORY.nights) == figure


def test_before_the_first_night_the_section_says_how_to_begin():
    section = champion_section(ChampionHistory())
    assert section.items == ()
    assert "mesa nightly" in section.paragraphs[0]


def test_handovers_are_told_with_their_reasons():
    assert champion_section(HISTORY).lines == ("2030-01-03: third by hand: because",)


def test_foreign_text_is_harmless():
    night = replace(
        WORSE,
        champion=standing(HOSTILE, 0.2),
        changes=Changes(added=(HOSTILE,), changed=(HOSTILE,), made_with=(HOSTILE,)),
        health=replace(WORSE.health, domains=(DomainHealth(HOSTILE, 1, 4, 0.2, None, None),)),  # type: ignore[type-var]
    )
    handover = Handover("2030-01-03T08:00:00+00:00", 2, "by hand", HOSTILE, HOSTILE)
    report = night_report(HOSTILE, ChampionHistory((night,), (handover,)))
    page = render_html(report)
    page.encode("utf-8")
    assert "<script>alert" not in page
    assert "\x00" not in page
    assert all(isinstance(item, Table) or item.svg for section in report.sections for item in section.items)


@pytest.mark.parametrize("night", [FIRST, WORSE])
def test_a_night_is_read_back_as_it_was(night: Night):
    from dataclasses import asdict

    assert Night.from_json(asdict(night)) == night
    assert all(isinstance(value, float) for value in night.metrics.values())
