"""One sandbox for the tests of a module. A test that waits for a deadline makes one of its own, with a shorter one."""

from collections.abc import Iterator

import pytest

from mesa_pipeline.config import SandboxSettings, Settings
from mesa_pipeline.policies.sandbox import Sandbox


@pytest.fixture(scope="session")
def limits(settings: Settings) -> SandboxSettings:
    return settings.policies.sandbox


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
