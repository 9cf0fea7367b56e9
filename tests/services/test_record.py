"""What the owner says is read as it was said, or not at all."""

from pathlib import Path

from mesa_pipeline.services.groups import Identity
from mesa_pipeline.services.record import OwnerStatus, ServiceStatus, State, status_file

SAID = OwnerStatus(
    Identity(17, 1000.25),
    (
        ServiceStatus("postgres", State.READY, 1001.5, Identity(18, 1000.75), log="/x/log"),
        ServiceStatus(
            "webserver", State.RESTARTING, 1002.0, url="http://127.0.0.1:3000", restarts=2, problem="a\x1b[31m\ud800\0"
        ),
    ),
    ("no wheel",),
)


def test_what_was_said_is_read(tmp_path: Path):
    SAID.write(tmp_path)
    assert OwnerStatus.read(tmp_path) == SAID


def test_nothing_is_read_from_nothing_or_from_something_else(tmp_path: Path):
    assert OwnerStatus.read(tmp_path) is None
    SAID.write(tmp_path)
    path = status_file(tmp_path)
    for content in (b"", b"{}", b"[]", path.read_bytes()[:-20], path.read_bytes().replace(b"17", b"71")):
        path.write_bytes(content)
        assert OwnerStatus.read(tmp_path) is None


def test_services_are_settled_when_there_is_nothing_to_wait_for():
    def status(*states: State) -> OwnerStatus:
        return OwnerStatus(SAID.owner, tuple(ServiceStatus(str(place), state, 0.0) for place, state in enumerate(states)))

    assert not status().settled and not status().ready
    assert status(State.READY).settled and status(State.READY).ready
    assert status(State.READY, State.FAILED).settled and not status(State.READY, State.FAILED).ready
    for state in (State.WAITING, State.STARTING, State.RESTARTING, State.STOPPED):
        assert not status(State.READY, state).settled
