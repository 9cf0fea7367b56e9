"""The whole report: determinism, hostile text, odd shapes, and two renderings that agree."""

import csv
import dataclasses
import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.reports import Report, ReportInputs, write_report
from mesa_pipeline.reports.contents import make_report
from mesa_pipeline.reports.html import render_html
from mesa_pipeline.reports.markdown import escape_markdown, render_markdown

HOSTILE = "<script>alert(1)</script> \x00\ud800\u202e | `x` [a](javascript:1) ![i](http://e.x/i.png) {{ 7*7 }} $\\frac{$ ]]>"
MAX_PAGE_BYTES = 1_500_000


@pytest.fixture(scope="module")
def report(inputs: ReportInputs) -> Report:
    return make_report(inputs)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def table_cells(page: str) -> list[str]:
    return [html.unescape(cell).strip() for cell in re.findall(r"<td[^>]*>.*?<bdi>(.*?)</bdi></td>", page)]


def test_writes_every_file_and_stays_small(inputs: ReportInputs, tmp_path: Path) -> None:
    paths = write_report(make_report(inputs), tmp_path / "deep" / "report")
    assert paths.html.stat().st_size < MAX_PAGE_BYTES
    compared = ("budget-curve", "search-curve", "subset-points")
    plots = ("subsets", "pareto", "policies", "budget", "candidates", "ladder", *compared)
    assert {path.name for path in paths.plots} == {f"{name}.csv" for name in plots}
    assert {path.stem for path in paths.figures} == {"domains", "capabilities", "cost", "policies", "build", "choices"}
    for path in (paths.html, paths.markdown, paths.metrics, *paths.plots, *paths.figures):
        assert path.is_file()


def test_equal_inputs_give_equal_bytes(inputs: ReportInputs, tmp_path: Path) -> None:
    write_report(make_report(inputs), tmp_path / "a")
    write_report(make_report(inputs), tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import hashlib, runpy, sys; fakes = runpy.run_path(sys.argv[1]);"
        "from mesa_pipeline.reports.contents import make_report; from mesa_pipeline.reports.html import render_html;"
        "inputs = fakes['fake_inputs'](fakes['fake_matrix'](episodes=10, questions=4), seeds=(0, 1));"
        "print(hashlib.sha256(render_html(make_report(inputs)).encode()).hexdigest())"
    )
    fakes = str(Path(__file__).with_name("conftest.py"))
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, fakes],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_markdown_has_the_figures_of_the_page(report: Report) -> None:
    page, document = render_html(report), render_markdown(report)
    cells = table_cells(page)
    assert len(cells) > 500
    rows = [line for line in document.splitlines() if line.startswith("|")]
    shown = [cell.strip().strip("*") for row in rows for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
    position = 0
    for cell in cells:
        position = shown.index(escape_markdown(cell), position) + 1
    for figure in report.key_figures:
        assert figure.value in page
        assert figure.value in document


def test_every_row_of_a_markdown_table_has_its_columns(report: Report) -> None:
    widths = [
        (len(block[0].split("|")), {len(re.split(r"(?<!\\)\|", row)) for row in block})
        for block in _markdown_tables(render_markdown(report))
    ]
    assert len(widths) >= 8
    assert all(widths_found == {width} for width, widths_found in widths)


def _markdown_tables(document: str) -> list[list[str]]:
    blocks = [block.splitlines() for block in document.split("\n\n") if block.startswith("|")]
    return [block for block in blocks if re.match(r"\| (:?-+:? \|)", block[1])]


def test_page_needs_nothing_from_elsewhere(report: Report) -> None:
    page = render_html(report)
    assert not re.search(r"(?:src|href)=[\"'](?!#)", page)
    assert "@import" not in page
    assert re.search(r"url\((?!#)", page) is None


def test_ids_in_the_page_are_unique(report: Report) -> None:
    ids = re.findall(r'\sid="([^"]*)"', render_html(report))
    assert len(ids) == len(set(ids))


def test_drawings_are_whole_svg_documents(report: Report) -> None:
    for figure in report.figures:
        root = ElementTree.fromstring(figure.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.get("aria-label") == figure.description


def test_hostile_text_is_shown_and_never_run(
    make_matrix: Callable[..., OutcomeMatrix], make_inputs: Callable[..., ReportInputs]
) -> None:
    matrix = make_matrix(episodes=8, questions=4, domains=(HOSTILE, "b\n# c", "d" * 100_000), capabilities=(HOSTILE, "y", "z"))
    inputs = dataclasses.replace(
        make_inputs(matrix, seeds=(0,), failures=(HOSTILE, "x" * 1_000_000)),
        dataset=HOSTILE,
        provenance={HOSTILE: HOSTILE},
        skipped=(HOSTILE,),
    )
    report = make_report(inputs)
    page, document = render_html(report), render_markdown(report)
    for rendered in (page, document):
        assert "<script>alert" not in rendered
        assert "&lt;script&gt;alert(1)" in rendered
        assert "49" not in re.findall(r"\{\{.*?\}\}", rendered)
        assert not re.search("[\x00\u202e\ud800-\udfff]", rendered)
        assert len(rendered) < MAX_PAGE_BYTES
    assert page.count("<script>") == 1
    assert "[a](javascript:1)" not in document.replace("\\[", "")
    for figure in report.figures:
        ElementTree.fromstring(figure.svg)


@pytest.mark.parametrize(
    ("shape", "seeds"),
    [
        ({"domains": ("dialogue",), "episodes": 6, "capabilities": ("single-hop", "multi-hop", "temporal")}, (0,)),
        ({"domains": ("a", "b"), "episodes": 6, "capabilities": (None,)}, (0, 1)),
        ({"episodes": 3, "questions": 1}, (0,)),
        ({"episodes": 4, "questions": 2}, ()),
        ({"episodes": 1, "questions": 1}, ()),
        ({"episodes": 26, "questions": 1, "domains": tuple("abcdefghijklmnopqrstuvwxyz")}, (0,)),
    ],
)
def test_odd_shapes(
    shape: dict[str, object],
    seeds: tuple[int, ...],
    make_matrix: Callable[..., OutcomeMatrix],
    make_inputs: Callable[..., ReportInputs],
    tmp_path: Path,
) -> None:
    paths = write_report(make_report(make_inputs(make_matrix(**shape), seeds=seeds)), tmp_path)
    page = paths.html.read_text(encoding="utf-8")
    assert not re.search(r">\s*[−+]?(nan|inf|None)\b", page)
    assert ("No policy has been tested" in page) == (not seeds)
    json.loads(paths.metrics.read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_one_domain_gets_bars_and_three_a_radar(
    make_matrix: Callable[..., OutcomeMatrix], make_inputs: Callable[..., ReportInputs]
) -> None:
    inputs = make_inputs(make_matrix(episodes=4, domains=("dialogue",), capabilities=("x", "y", "z")), seeds=())
    captions = {figure.name: figure.caption for figure in make_report(inputs).figures}
    assert "A star marks" not in captions["domains"]
    assert "A star marks" in captions["capabilities"]
    assert "optimistic" in captions["domains"]
    assert "optimistic" in captions["capabilities"]


def test_nothing_swept_is_a_report_too(inputs: ReportInputs, tmp_path: Path) -> None:
    empty = OutcomeMatrix((), np.empty((0, 31)), np.empty((0, 31)))
    paths = write_report(make_report(ReportInputs("none", {}, empty, inputs.evaluation)), tmp_path)
    assert "No question has been swept yet." in paths.markdown.read_text(encoding="utf-8")


def test_unscored_and_missing_cells_are_counted(matrix: OutcomeMatrix, inputs: ReportInputs) -> None:
    scores, tokens = matrix.scores.copy(), matrix.tokens.copy()
    scores[0, :3] = np.nan
    tokens[0, 0] = np.nan
    document = render_markdown(make_report(dataclasses.replace(inputs, matrix=OutcomeMatrix(matrix.questions, scores, tokens))))
    assert "| Outcomes read but unscored | 2 |" in document
    assert "| Outcomes missing | 1 |" in document
    assert "3 unscored outcomes are left out of the means" in document


def test_failures_are_listed_and_their_absence_is_said(inputs: ReportInputs) -> None:
    assert "Nothing failed and no row was left out." in render_html(make_report(inputs))
    failed = dataclasses.replace(inputs, failures=tuple(f"unit {k}" for k in range(150)), skipped=("row 3: no answer",))
    document = render_markdown(make_report(failed))
    assert "150 units failed; 1 row left out on loading." in document
    assert "and 50 more" in document
    assert "Left out: row 3: no answer" in document


def test_metrics_agree_with_the_tests(inputs: ReportInputs, tmp_path: Path) -> None:
    metrics = json.loads(write_report(make_report(inputs), tmp_path).metrics.read_text(encoding="utf-8"))
    frozen = [test.row("frozen policy") for test in inputs.tests]
    full = [test.row("all") for test in inputs.tests]
    assert metrics["frozen_score"] == pytest.approx(np.mean([row.evaluation.score for row in frozen]), abs=1e-6)
    assert metrics["difference_low"] == pytest.approx(np.mean([row.versus_all.low for row in frozen]), abs=1e-6)
    share = sum(row.evaluation.tokens for row in frozen) / sum(row.evaluation.tokens for row in full)
    assert metrics["token_share"] == pytest.approx(share, abs=1e-6)
    assert metrics["split_seeds"] == 5


def test_cost_points_are_over_the_test_questions(inputs: ReportInputs, tmp_path: Path) -> None:
    write_report(make_report(inputs), tmp_path)
    with (tmp_path / "plots" / "pareto.csv").open(encoding="utf-8") as file:
        points = {row["name"]: row for row in csv.DictReader(file)}
    full = [test.row("all").evaluation for test in inputs.tests]
    assert float(points["S+T+G+V+R"]["score"]) == pytest.approx(np.mean([worth.score for worth in full]), abs=1e-6)
    assert float(points["S+T+G+V+R"]["tokens"]) == pytest.approx(np.mean([worth.tokens for worth in full]), abs=1e-6)
    assert points["frozen policy"]["kind"] == "policy"
    assert len(points) == 32


def test_other_tests_of_a_split_are_counted(inputs: ReportInputs) -> None:
    first, *rest = inputs.tests
    again = dataclasses.replace(first, earlier=(dataclasses.replace(first.receipt, manifest_sha256="another"),))
    assert "of this seed before" not in render_markdown(make_report(inputs))
    shown = render_markdown(make_report(dataclasses.replace(inputs, tests=(again, *rest))))
    assert shown.count("1 other test of this seed before") == 1
