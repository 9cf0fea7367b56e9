"""The report's sections on the search, on made-up searches."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from mesa_pipeline.evaluation.ladder import ladder
from mesa_pipeline.reports.document import Figure, Listing, Report, Section, Table
from mesa_pipeline.reports.html import render_html
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.markdown import render_markdown
from mesa_pipeline.reports.search import ablations_section, policy_section, search_section
from mesa_pipeline.reports.search_findings import Arm, Candidate, Reading, SearchFinding, Worth
from mesa_pipeline.reports.search_tables import candidates_csv

HOSTILE = "<script>alert(1)</script> \x00 \u202e ``` {{ 7 * 7 }} | \ud800"
SOURCE = "def select(state, q):\n\treturn ['S'] if '`' in q['question'] else ['T']\n"


def worth(objective: float, tokens: float) -> Worth:
    return Worth(objective + 1e-6 * tokens, tokens, 2.0, objective, objective + 0.01)


def search(seed: int = 0, hypothesis: str = "words tell", source: str = SOURCE) -> SearchFinding:
    """``all``, a fresh idea, its mend, one that repeats it, and an invalid one; the mend is frozen."""
    start = Candidate("all", 0, None, None, "evaluated", worth(0.20, 18_000.0))
    fresh = Candidate("01-explore", 1, "explore", "lexical-rules", "evaluated", worth(0.22, 4000.0), (), hypothesis, "", True)
    mend = Candidate(
        "02-repair", 2, "repair", "lexical-rules", "evaluated", worth(0.23, 6000.0), ("01-explore",), hypothesis, "", True
    )
    twin = Candidate(
        "02-exploit", 2, "exploit", "lexical-rules", "duplicate", fresh.worth, reason="chooses exactly as 01-explore"
    )
    broken = Candidate("02-explore", 2, "explore", "analogy", "invalid", None, reason=HOSTILE)
    return SearchFinding(
        seed=seed,
        proposer="template",
        rule="argmax",
        planned=6,
        lambda_=1e-6,
        candidates=(start, fresh, twin, broken, mend),
        arms=(Arm("lexical-rules", 2, 0.225, 0.05, 0, 1), Arm("analogy", 0, 0.23, 0.1, 1, 0)),
        chosen="02-repair",
        manifest_sha256=f"frozen-{seed}",
        source=source,
        state='{\n "cells": {\n  "Game": [\n   "S",\n   "T"\n  ]\n }\n}',
        readings=(Reading(0.0, "02-repair"), Reading(1e-6, "02-repair"), Reading(1e-4, "01-explore")),
        hypervolume=0.19,
        bonus_to_spread=4.0,
    )


@pytest.fixture(scope="module")
def searched(inputs: ReportInputs) -> ReportInputs:
    tests = tuple(replace(test, receipt=replace(test.receipt, manifest_sha256=f"frozen-{test.seed}")) for test in inputs.tests)
    return replace(inputs, tests=tests, searches=(search(0), search(1)))


def table(section: Section, name: str) -> Table:
    return next(item for item in section.items if isinstance(item, Table) and item.name == name)


def texts(found: Table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in found.rows]


def rendered(*sections: Section) -> Report:
    return Report("t", "v", (), (), sections)


def test_the_budget_is_told_as_it_was_spent(searched: ReportInputs) -> None:
    (said,) = search_section(searched).paragraphs
    assert "6 candidates planned 2 were evaluated, 1 chose exactly as an earlier one and 1 were invalid" in said
    assert texts(table(search_section(searched), "searches"))[1][:6] == ["1", "02-repair lexical-rules", "6", "2", "1", "1"]


def test_inflation_by_hand(searched: ReportInputs) -> None:
    first, second, *_ = [test for test in searched.tests if test.seed in (0, 1)]
    rows = table(search_section(searched), "inflation").rows
    assert [row.cells[0].text for row in rows] == ["0", "1", "mean"]
    gained = first.validation.score - 0.218  # what all five score on validation
    tested = first.row("frozen policy").versus_all.mean
    assert [cell.order for cell in rows[0].cells[4:]] == pytest.approx([gained, tested, gained - tested])
    assert rows[2].cells[3].order == pytest.approx((first.inflation + second.inflation) / 2)


def test_the_best_candidates_come_first_and_the_frozen_one_is_marked(searched: ReportInputs) -> None:
    best = table(search_section(searched), "candidates")
    assert [row.cells[0].text.split()[0] for row in best.rows] == ["02-repair", "01-explore", "all"]
    assert [row.highlighted for row in best.rows] == [True, False, False]


def test_the_lineage_goes_back_to_all_whatever_parents_are_claimed(searched: ReportInputs) -> None:
    found = search()
    odd = replace(found.candidates[1], parents=("02-repair", "nobody", "01-explore"))
    found = replace(found, candidates=(found.candidates[0], odd, *found.candidates[2:]))
    assert [candidate.id for candidate in found.lineage()] == ["02-repair", "01-explore", "all"]
    assert [candidate.id for candidate in replace(found, chosen="all").lineage()] == ["all"]


def test_other_prices_are_read_off_the_archive(searched: ReportInputs) -> None:
    rows = table(search_section(searched), "readings").rows
    assert [(row.cells[0].text, row.cells[1].text.split()[0], row.highlighted) for row in rows] == [
        ("0.0", "02-repair", False),
        ("1.0", "02-repair", True),
        ("100.0", "01-explore", False),
    ]


def test_figures_are_drawn_of_searches_of_any_outcome(searched: ReportInputs) -> None:
    nothing = replace(search(), candidates=search().candidates[:1], chosen="all", readings=(Reading(1e-6, "all"),), planned=0)
    nothing = replace(nothing, candidates=(replace(nothing.candidates[0], on_front=True),))
    for found in (search(), nothing):
        figures = [item for item in search_section(replace(searched, searches=(found,))).items if isinstance(item, Figure)]
        assert [figure.name for figure in figures] == ["search-objective-0", "search-arms-0", "search-archive-0"]
        for figure in figures:
            ElementTree.fromstring(figure.svg)
            assert not re.search(r"\b(nan|inf)\b", figure.description)


def test_the_policy_is_shown_with_its_code_and_what_it_learnt(searched: ReportInputs) -> None:
    code, state = (item for item in policy_section(searched).items if isinstance(item, Listing))
    assert code.code.splitlines()[1] == "    return ['S'] if '`' in q['question'] else ['T']"
    assert '"Game": ["S", "T"]' in state.code


def test_the_test_of_an_earlier_policy_says_nothing_of_this_one(searched: ReportInputs) -> None:
    anew = replace(searched, searches=(replace(search(), manifest_sha256="frozen anew"),))
    names = [item.name for make in (search_section, policy_section) for item in make(anew).items]
    assert "behaviour" not in names
    assert "inflation" not in names


def test_the_behaviour_is_that_of_the_test(searched: ReportInputs) -> None:
    test = searched.tests[0]
    first, *groups = table(policy_section(searched), "behaviour").rows
    masks = np.array(list(test.choices.values()))
    assert first.cells[1].order == len(masks)
    assert first.cells[4].order == pytest.approx(np.mean(masks & 1 > 0)), "how often the summary is read"
    where = {question.id: question.domain for question in searched.matrix.questions}
    game = [mask for id, mask in test.choices.items() if where[id] == "Game"]
    (row,) = [row for row in groups if row.cells[0].text == "domain: Game"]
    assert row.cells[1].order == len(game)
    assert row.cells[3].text == "100%", "the made-up policy looks up the domain"


def test_hostile_code_and_words_are_shown_and_never_run(searched: ReportInputs) -> None:
    hostile = search(hypothesis=HOSTILE, source=f"'''{HOSTILE}'''\n</code></pre><script>alert(2)</script>\n````\n")
    sections = [make(replace(searched, searches=(hostile,))) for make in (search_section, policy_section)]
    page, document = render_html(rendered(*sections)), render_markdown(rendered(*sections))
    assert "<script>alert" not in page
    assert page.count("</pre>") == 2
    assert "&lt;script&gt;alert(2)" in page
    for text in (page, document):
        assert not re.search("[\x00\u202e\ud800-\udfff]", text)
    fences = [line for line in document.splitlines() if re.fullmatch("`{3,}(python|json)?", line)]
    assert fences[0] == "`````python"
    assert fences[1] in ("````", "`````")
    assert document.splitlines().count("`````") == 1, "nothing in the code closes its fence"


def test_ablations_stand_beside_every_baseline(searched: ReportInputs, settings) -> None:
    ablations = {"route to one": searched.tests[:2]}
    rungs = ladder(searched.tests, ablations, searched.matrix, settings.evaluation)
    section = ablations_section(replace(searched, ablations=ablations, ladder=rungs))
    rows = table(section, "ladder").rows
    names = [row.cells[0].text for row in rows]
    assert names[:5] == ["S summary", "T temporal", "G graph", "V vector", "R raw"]
    assert names[-4:] == ["MESA, route to one", "MESA asked without labels", "MESA", "oracle"]
    same = rows[names.index("MESA, route to one")]
    assert same.cells[6].text == "0.00", "the ablation's policies are the frozen ones here"
    assert same.cells[8].text == "2"
    assert [row.highlighted for row in rows].count(True) == 1


def test_what_has_not_been_done_is_said(inputs: ReportInputs) -> None:
    assert "mesa optimize" in search_section(inputs).paragraphs[0]
    assert "mesa optimize" in policy_section(inputs).paragraphs[0]
    assert ablations_section(inputs).items == ()


def test_the_series_has_every_candidate_of_every_seed(searched: ReportInputs) -> None:
    lines = candidates_csv(searched.searches).splitlines()
    assert len(lines) == 1 + 2 * 5
    assert lines[1].startswith("0,all,0,,,evaluated,0.2,0.218,18000")
    assert lines[4] == "0,02-explore,2,explore,analogy,invalid,,,,,,0"
