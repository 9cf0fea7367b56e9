"""One sandbox for the tests of a module; its limits are short where a test waits for them."""

from collections.abc import Iterator

import pytest

from mesa_pipeline.config import SandboxSettings, Settings
from mesa_pipeline.policies.sandbox import Sandbox


@pytest.fixture(scope="session")
def limits(settings: Settings) -> SandboxSettings:
    """The default limits, except that no test waits ten seconds for one."""
    return settings.policies.sandbox.model_copy(update={"fit_seconds": 2.0, "select_seconds": 2.0})


@pytest.fixture(scope="module")
def sandbox(limits: SandboxSettings) -> Iterator[Sandbox]:
    with Sandbox(limits) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def confined(sandbox: Sandbox) -> Sandbox:
    """A sandbox that the kernel enforces."""
    if sandbox.tier != "kernel":
        pytest.skip(f"this system cannot confine a process: {sandbox.confinement}")
    return sandbox
