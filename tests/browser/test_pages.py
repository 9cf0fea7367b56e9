"""The pages of Dagster, MLflow and the report, seen in a browser and used by clicks alone."""

import re
from collections.abc import Callable

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.definitions import defs
from tests.services.served import Served

pytest.importorskip("playwright.sync_api", reason="needs the package playwright (make setup)")
from playwright.sync_api import Browser, Page, expect

from tests.browser import clicks

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]
Keep = Callable[[Page, str], None]

DATASET = "synthetic"
GRAPH = defs().resolve_asset_graph()
TALL = {"width": 1440, "height": 1300}
ASSETS = sorted(key.to_user_string() for key in GRAPH.get_all_asset_keys())


@pytest.fixture(scope="module")
def materialized(chromium: Browser, shown: Served) -> str:
    """Everything made for one dataset by clicks; what the page of runs then says."""
    page = chromium.new_page()
    clicks.open_graph(page, shown)
    clicks.launch_everything(page, DATASET)
    return clicks.wait_for_latest_run(page, shown)


def page_of(name: str, shown: Served) -> str:
    """Address of a page that the pipeline wrote."""
    layout = Layout(shown.workspace, DATASET)
    folders = {"report": layout.report, "baselines": layout.comparison, "night": layout.champion}
    return (folders[name] / f"{name}.html").as_uri()


def test_the_whole_graph_is_materialised_by_clicks_alone(materialized: str, shown: Served, page: Page, screenshot: Keep):
    assert materialized == "Success"
    assert (Layout(shown.workspace, DATASET).report / "report.html").is_file()
    page.goto(f"{shown.graph}/runs")
    expect(page.get_by_text("Success", exact=True).first).to_be_visible()
    screenshot(page, "dagster-runs")


def test_the_graph_shows_every_asset(materialized: str, shown: Served, page: Page, screenshot: Keep):
    page.set_viewport_size(TALL)  # what is outside of it is not drawn
    clicks.open_graph(page, shown)
    for name in ASSETS:
        expect(page.get_by_text(re.compile(rf"^{name[:9]}")).last).to_be_visible()
    screenshot(page, "dagster-graph")


@pytest.mark.parametrize("asset", ["subset_sweep_scores", "optimized_policy", "test_report", "comparison_report"])
def test_the_page_of_an_asset_shows_its_plots_and_tables(
    asset: str, materialized: str, shown: Served, page: Page, screenshot: Keep
):
    clicks.open_asset(page, shown, asset)
    folded = page.get_by_text("[Show Markdown]")
    expect(folded.first).to_be_visible()
    plots = tables = 0
    for item in folded.all():
        item.click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator("img, table, code").first).to_be_visible()
        for image in dialog.locator("img").all():
            expect(image).to_have_js_property("complete", True)
            assert image.evaluate("image => image.naturalWidth > 100 && image.clientWidth > 100")
            if not plots:
                screenshot(page, f"dagster-plot-{asset}")
            plots += 1
        tables += dialog.locator("table tbody tr").count() > 0
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_be_hidden()
    tables += page.locator("table table tbody tr").count() > 0
    assert plots >= 1
    assert tables >= 1 or asset == "comparison_report"


@pytest.mark.parametrize("asset", ["raw_trajectories", "subset_sweep_scores", "optimized_policy", "test_report"])
def test_every_check_of_an_asset_is_seen_to_succeed(asset: str, materialized: str, shown: Served, page: Page, screenshot: Keep):
    clicks.open_asset(page, shown, asset, "checks")
    checks = [key.name for key in GRAPH.asset_check_keys if key.asset_key.to_user_string() == asset]
    for check in checks:
        expect(page.get_by_text(check, exact=True).first).to_be_visible()
    expect(page.get_by_text("Succeeded", exact=True)).to_have_count(len(checks))
    expect(page.get_by_text("Passed", exact=True).first).to_be_visible()
    screenshot(page, f"dagster-checks-{asset}")


def test_the_nightly_automation_is_off_and_can_be_switched(shown: Served, page: Page, screenshot: Keep):
    page.goto(f"{shown.graph}/automation")
    expect(page.get_by_text("nightly", exact=True).first).to_be_visible()
    switch = page.locator("label[class*=Switch]").last
    expect(switch.locator("input")).not_to_be_checked()
    switch.click()
    expect(switch.locator("input")).to_be_checked()
    screenshot(page, "dagster-automation")
    switch.click()
    expect(switch.locator("input")).not_to_be_checked()


def test_two_candidates_are_compared_side_by_side(materialized: str, shown: Served, page: Page, screenshot: Keep):
    clicks.tick_two_candidates(page, clicks.open_searches(page, shown, DATASET))
    screenshot(page, "mlflow-candidates")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Comparing 2 Runs")).to_be_visible()
    for name in ("J", "C", "objective", "hypothesis", "direction"):
        row = page.get_by_role("row").filter(has=page.get_by_text(name, exact=True))
        assert all(cell.inner_text().strip() for cell in row.first.get_by_role("cell").all()[-2:]), name
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    for section in ("Visualizations", "Run details"):
        page.get_by_text(section, exact=True).click()  # folds it, so that parameters and metrics are seen
    screenshot(page, "mlflow-compare")


def test_the_history_of_a_search_is_drawn(materialized: str, shown: Served, page: Page, screenshot: Keep):
    clicks.open_searches(page, shown, DATASET).get_by_role("link").click()
    page.get_by_text("Model metrics", exact=True).click()
    chart = page.locator(".js-plotly-plot").filter(has=page.locator(".trace path.js-line")).first
    expect(chart).to_be_visible()
    assert len(str(chart.locator("path.js-line").first.get_attribute("d"))) > len("M0,0")
    screenshot(page, "mlflow-history")


def test_a_comparison_is_read_as_a_table_policy_by_policy_and_question_by_question(
    materialized: str, shown: Served, page: Page, screenshot: Keep
):
    clicks.open_searches(page, shown, DATASET).get_by_role("link").click()
    page.get_by_text("Artifacts", exact=True).first.click()
    policies = {row["policy"]: row for row in clicks.read_table(page, "policies.json")}
    screenshot(page, "mlflow-policies")
    for name in ("frozen policy", "all", "S", "best fixed", "random"):
        low, mean, high = (float(policies[name][column]) for column in ("from", "versus all", "to"))
        assert low <= mean <= high, name
        assert 0 < float(policies[name]["score"]) <= 100
        assert float(policies[name]["tokens"]) > 0
    questions = clicks.read_table(page, "questions.json")
    screenshot(page, "mlflow-questions")
    for row in questions:
        assert len(row["question"]) > 10
        assert set(row["reads: frozen policy"].split("+")) <= set("STGVR")
        assert 0 <= float(row["score: all"]) <= 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "height"), [("report", 720), ("baselines", 1510), ("night", 720)])
def test_a_page_is_drawn_and_complains_of_nothing(
    name: str, height: int, scheme: str, materialized: str, shown: Served, page: Page, screenshot: Keep
):
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 1280, "height": height})
    page.goto(page_of(name, shown))
    drawings = page.locator("figure svg")
    expect(drawings.first).to_be_visible()
    assert all(drawing.bounding_box()["height"] > 20 for drawing in drawings.all() if drawing.is_visible())
    screenshot(page, f"{name}-{scheme}")
    for width in (1280, 800, 400):
        page.set_viewport_size({"width": width, "height": height})
        assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert complaints == []


def test_a_wide_table_keeps_its_first_column_in_sight(materialized: str, shown: Served, page: Page):
    page.goto(page_of("baselines", shown))
    table = page.locator("#table-table-1-capabilities")
    system, last = table.locator("tbody td:first-child").first, table.locator("th").last
    before = system.bounding_box()
    last.scroll_into_view_if_needed()
    after, heading = system.bounding_box(), last.bounding_box()
    assert before["x"] == after["x"]
    assert heading["x"] + heading["width"] <= page.viewport_size["width"]


def test_no_page_asked_another_machine_for_anything(materialized: str, foreign_hosts: set[str]):
    assert foreign_hosts == set()
