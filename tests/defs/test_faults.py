"""When a step is tried again."""

from mesa_pipeline.config import Settings
from mesa_pipeline.defs.faults import retry_after
from mesa_pipeline.errors import ConfigError, DataError, MissingDependency, Unreachable, WorkerDied, WorkspaceBusy


def test_only_what_may_pass_is_transient():
    assert all(kind.transient for kind in (Unreachable, WorkerDied, WorkspaceBusy))
    assert not any(kind.transient for kind in (ConfigError, DataError, MissingDependency))


def test_a_server_is_given_twice_as_long_each_time_up_to_a_limit(settings: Settings):
    retries = settings.run.retries
    waits = [retry_after(Unreachable("gone"), "run", attempt, retries) for attempt in range(12)]
    assert {wait.max_retries for wait in waits} == {retries.limit}
    for attempt, wait in enumerate(waits):
        longest = min(retries.backoff_seconds * 2**attempt, retries.max_backoff_seconds)
        assert longest / 2 <= wait.seconds_to_wait <= longest


def test_a_busy_workspace_is_looked_at_again_and_again(settings: Settings):
    retries = settings.run.retries
    wait = retry_after(WorkspaceBusy("busy"), "run", 500, retries)
    assert wait.max_retries == retries.busy_limit
    assert retries.busy_seconds / 2 <= wait.seconds_to_wait <= retries.busy_seconds


def test_two_runs_do_not_return_at_the_same_moment(settings: Settings):
    waits = {retry_after(WorkspaceBusy("busy"), f"run {n}", 1, settings.run.retries).seconds_to_wait for n in range(20)}
    assert len(waits) > 10
