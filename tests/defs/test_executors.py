"""Where the steps of a run are executed."""

import pytest

from mesa_pipeline.defs.executors import BACKEND_VARIABLE, BROKER_VARIABLE, EXECUTORS, executor_named
from mesa_pipeline.errors import ConfigError

MULTIPLE_PROCESSES = {"celery", "kubernetes"}


@pytest.mark.parametrize("name", EXECUTORS)
def test_each_can_be_made_and_says_whether_steps_leave_the_process(name: str):
    executor = executor_named(name)
    needs = {requirement.name for requirement in executor.get_requirements({})}
    assert ("NON_EPHEMERAL_INSTANCE" in needs) == (name in MULTIPLE_PROCESSES)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match="'cellery'; known are in-process, celery, kubernetes"):
        executor_named("cellery")


def test_what_dagster_is_told_of_celery_are_names_of_variables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(BROKER_VARIABLE, "redis://:a-secret@broker/0")
    monkeypatch.setenv(BACKEND_VARIABLE, "redis://:a-secret@broker/1")
    executor = executor_named("celery")
    assert "a-secret" not in repr(vars(executor))
    inner = executor.apply_config_mapping({"config": {}}).value  # what the worker of a run sees
    assert inner["config"]["broker"] == "redis://:a-secret@broker/0"
