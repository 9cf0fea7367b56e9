"""One served workspace and one browser for all tests of this folder, which xdist keeps together because they are one file."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.conftest import REPOSITORY
from tests.services.served import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TINY = (
    "datasets.synthetic.episodes=10",
    "datasets.synthetic.steps=12",
    "datasets.synthetic.questions=3",
    "splits.seeds=[0]",
    "search.iterations=4",
    "evaluation.bootstrap_samples=100",
    "ablations=[{name: route to one, set: [search.max_structures=1]}]",
    "run.workers=1",
)
FOR_THE_README = (
    "datasets.synthetic.episodes=24",
    "datasets.synthetic.steps=30",
    "datasets.synthetic.questions=8",
    "splits.seeds=[0]",
    "search.iterations=12",
    "ablations=[{name: route to one, set: [search.max_structures=1]}]",
)
WORKSPACE, SCREENSHOTS = "MESA_BROWSER_WORKSPACE", "MESA_SCREENSHOTS"
"""Environment variables: a workspace that `mesa up` serves already, and a folder for screenshots worth keeping."""
VIEWPORT = {"width": 1440, "height": 900}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
LOCAL = {"127.0.0.1", ""}
"""Hosts that pages may ask; data and files have none."""
PATIENCE_MS = 60_000


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    """Debian's Chromium, without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright (make setup)")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    sync_api.expect.set_options(timeout=PATIENCE_MS)
    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shown(chromium: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A workspace with nothing in it yet, served with settings under which everything is made in seconds."""
    workspace = Path(os.environ.get(WORKSPACE) or tmp_path_factory.mktemp("browser") / "workspace")
    with served(workspace.absolute(), FOR_THE_README if SCREENSHOTS in os.environ else TINY) as found:
        yield found


@pytest.fixture(scope="session")
def foreign_hosts() -> set[str]:
    """Whom the pages of all tests asked for something, beyond this machine."""
    return set()


@pytest.fixture
def page(chromium: "Browser", foreign_hosts: set[str]) -> Iterator["Page"]:
    """A fresh page in light colours."""
    with chromium.new_context(viewport=VIEWPORT, color_scheme="light") as context:
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda request: foreign_hosts.update({urlsplit(request.url).hostname or ""} - LOCAL))
        yield context.new_page()


@pytest.fixture(scope="session")
def screenshot() -> Callable[["Page", str], None]:
    """Keeps what a page shows as ``build/screenshots/<name>.png``, or where the environment says."""
    folder = Path(os.environ.get(SCREENSHOTS, REPOSITORY / "build" / "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)

    def keep(page: "Page", name: str) -> None:
        page.screenshot(path=folder / f"{name}.png", animations="disabled")

    return keep
