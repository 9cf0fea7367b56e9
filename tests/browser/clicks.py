"""What a person does in Dagster's and MLflow's pages, by what stands on their buttons."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.services.served import Served

WORK_MS = 900_000
"""For the whole graph on a busy machine; the daemon looks at a backfill every 30 seconds alone."""


def open_graph(page: Page, shown: Served) -> None:
    """The asset graph with every group opened."""
    page.goto(f"{shown.graph}/asset-groups")
    expect(materialize_all(page)).to_be_enabled()
    expect(page.get_by_text("structures").last).to_be_visible()
    page.mouse.click(page.viewport_size["width"] * 0.6, page.viewport_size["height"] * 0.85, button="right")
    page.get_by_role("menuitem").filter(has_text="Expand all groups").click()


def materialize_all(page: Page) -> Locator:
    """The button above the graph."""
    return page.get_by_role("button", name="Materialize all")


def launch_everything(page: Page, partition: str) -> None:
    """Materialize all of one dataset, from the graph's page."""
    materialize_all(page).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Select a partition").click()
    page.get_by_role("menuitem").filter(has_text=partition).click()
    dialog.get_by_text("Launch runs to materialize").click()  # closes the list
    dialog.get_by_role("button", name="Launch backfill").click()
    expect(page.get_by_text("Created backfill")).to_be_visible()


def wait_for_latest_run(page: Page, shown: Served) -> str:
    """What the page of runs says of the latest one, once it has ended."""
    page.goto(f"{shown.graph}/runs")
    ended = page.get_by_text("Success", exact=True).or_(page.get_by_text("Failure", exact=True)).first
    expect(ended).to_be_visible(timeout=WORK_MS)
    return ended.inner_text()


def open_asset(page: Page, shown: Served, name: str, view: str = "overview") -> None:
    """One tab of an asset's page."""
    page.goto(f"{shown.graph}/assets/{name}?view={view}")
    expect(page.get_by_text("Materialize").first).to_be_visible()


def open_searches(page: Page, shown: Served, dataset: str) -> Locator:
    """MLflow's table of a dataset's searches; the cell of the first one."""
    page.goto(shown.candidates)
    page.get_by_role("button", name="Close").last.click()  # a panel at the side, about another product
    page.get_by_text("Model training", exact=True).click()
    page.get_by_role("link", name="Experiments").first.click()
    page.get_by_test_id("experiment-list-item-link").filter(has_text=dataset).click()
    return page.get_by_role("gridcell").filter(has_text="search-seed-0").last


def tick_two_candidates(page: Page, search: Locator) -> None:
    """Choose the first two candidates of a search that were evaluated."""
    wanted = page.get_by_placeholder("metrics.rmse")
    wanted.fill("params.status = 'evaluated'")
    wanted.press("Enter")
    page.wait_for_url(re.compile("searchFilter=params"))
    search.get_by_role("button").first.click()
    candidates = page.get_by_role("row").filter(has=page.get_by_role("link", name=re.compile(r"^(all|\d+-\w+)$")))
    expect(candidates.nth(1)).to_be_visible()
    for candidate in (candidates.nth(0), candidates.nth(1)):
        candidate.locator("input.ag-checkbox-input").check()


def read_table(page: Page, file: str) -> list[dict[str, str]]:
    """The rows in sight of a table among the artifacts of the run that is open, by the headings of their columns."""
    page.get_by_text(file, exact=True).first.click()
    expect(page.get_by_text("View as table")).to_be_visible()
    table = page.get_by_role("table").last
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    headings, *rows = (row.get_by_role("columnheader").or_(row.get_by_role("cell")) for row in table.get_by_role("row").all())
    names = headings.all_inner_texts()
    return [dict(zip(names, row.all_inner_texts(), strict=True)) for row in rows]
