"""What the assets work with."""

import logging

import pytest

from mesa_pipeline.defs.resources import LoggedProgress, data_variable


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_long_work_is_logged_now_and_then_with_rate_and_time_left(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    clock = Clock()
    progress = LoggedProgress(logging.getLogger("test"), every=10, clock=clock)
    progress("sweeping", 0, 100)
    for done in range(1, 101):
        clock.now += 0.5
        progress("sweeping", done, 100)
    assert caplog.messages[0] == "sweeping: 0 of 100"
    assert caplog.messages[1] == "sweeping: 20 of 100 (2.0/s, 40 s left)"
    assert caplog.messages[-1] == "sweeping: 100 of 100 (2.0/s)"
    assert len(caplog.messages) == 6


def test_work_with_nothing_to_do_is_not_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    LoggedProgress(logging.getLogger("test"))("building", 0, 0)
    assert caplog.messages == []


def test_each_data_set_has_an_environment_variable_of_its_own():
    names = ["ama_bench", "traces", "traces.support", "traces.sales"]
    assert [data_variable(name) for name in names] == [
        "MESA_DATA_AMA_BENCH",
        "MESA_DATA_TRACES",
        "MESA_DATA_TRACES_SUPPORT",
        "MESA_DATA_TRACES_SALES",
    ]
