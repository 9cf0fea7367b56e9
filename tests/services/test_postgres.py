"""The embedded PostgreSQL, for real: what it survives, and who can reach it."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from mesa_pipeline.errors import MissingDependency, WorkspaceBusy
from mesa_pipeline.services.postgres import EmbeddedPostgres, find_installation, unavailable
from mesa_pipeline.services.privileges import server_user
from mesa_pipeline.services.sockets import socket_folder

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
REPOSITORY = Path(__file__).resolve().parents[2]
ROOT = os.geteuid() == 0
OWNER = """
import sys, time
from pathlib import Path
from mesa_pipeline.services.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
server.ensure_database("mesa", ["vector"])
sys.stdout.write(f"{server.pid}\\n")
sys.stdout.flush()
time.sleep(float(sys.argv[2]))
server.stop()
"""


def execute(server: EmbeddedPostgres, statement: str, database: str = "mesa") -> list[tuple]:
    with psycopg.connect(server.url(database)) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def fill(server: EmbeddedPostgres) -> None:
    server.ensure_database("mesa")
    execute(server, "DROP TABLE IF EXISTS kept")
    execute(server, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")


def count(server: EmbeddedPostgres) -> int:
    return int(execute(server, "SELECT count(*) FROM kept")[0][0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("owned") / "postgres"


@pytest.fixture(scope="module")
def server(folder):
    """One that tests may hurt: whatever they do to it, it runs again when they are done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_SECRET", "hunter2-hunter2")
        with EmbeddedPostgres(folder) as running:
            yield running


def test_databases_and_pgvector_are_there_once_however_often_they_are_asked_for(postgres):
    for _ in range(2):
        postgres.ensure_database("asked twice", ["vector"])
    assert execute(postgres, "SELECT extname FROM pg_extension WHERE extname = 'vector'", "asked twice") == [("vector",)]
    assert execute(postgres, "SELECT '[1,2]'::vector <#> '[3,4]'", "asked twice") == [(-11.0,)]


def test_other_drivers_are_given_the_same_database(postgres):
    import sqlalchemy

    for driver in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2"):
        engine = sqlalchemy.create_engine(postgres.url("postgres", driver))
        with engine.connect() as connection:
            assert connection.execute(sqlalchemy.text("SELECT current_user")).scalar() == "mesa"
        engine.dispose()


def test_it_listens_on_no_port_and_tells_no_secret(server):
    process = psutil.Process(server.pid)
    assert process.net_connections(kind="unix")
    assert process.net_connections(kind="inet") == []
    assert execute(server, "SHOW listen_addresses", "postgres") == [("",)]
    assert "hunter2" not in str([process.cmdline(), process.environ()])


def test_its_files_are_for_its_owner_alone(server, folder):
    sockets = socket_folder(folder / "data", ".s.PGSQL.5432")
    for private in (folder, folder / "data", sockets, sockets.parent):
        assert private.stat().st_mode & 0o777 == 0o700
    for outer in (folder, sockets.parent):
        assert outer.stat().st_uid == os.geteuid()
    assert psutil.Process(server.pid).uids().effective != 0
    assert execute(server, "SELECT 1", "postgres") == [(1,)]


def test_a_stop_keeps_the_data_and_leaves_nothing_else(tmp_path):
    server = EmbeddedPostgres(tmp_path / "postgres")
    server.start()
    fill(server)
    pid, sockets = server.pid, socket_folder(tmp_path / "postgres" / "data", ".s.PGSQL.5432")
    server.start()
    assert server.pid == pid, "a second start does nothing"
    server.stop()
    server.stop()
    assert gone(pid)
    assert server.pid is None
    assert not sockets.parent.exists()
    with server:
        assert count(server) == 1000


def test_it_starts_again_after_it_was_killed(server):
    fill(server)
    busy = psycopg.connect(server.url("mesa"))
    busy.execute("INSERT INTO kept SELECT generate_series(1, 100000)")
    os.kill(server.pid, signal.SIGKILL)
    wait_for(lambda: server.poll() is not None)
    assert server.poll() == -signal.SIGKILL
    server.start()
    assert count(server) == 1000
    busy.close()


def test_it_ends_with_its_owner_and_the_next_owner_finds_the_data(tmp_path):
    if sys.platform != "linux":
        pytest.skip("only Linux tells a process that its parent died")
    folder = tmp_path / "postgres"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, folder, "600"], cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        pid = int(owner.stdout.readline())
        with pytest.raises(WorkspaceBusy):
            EmbeddedPostgres(folder).start()
        fill(EmbeddedPostgres(folder))
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    with EmbeddedPostgres(folder) as server:
        assert gone(pid), "never two on one folder"
        assert count(server) == 1000


def test_a_server_that_outlived_its_owner_is_ended_first(tmp_path):
    folder = tmp_path / "postgres"
    with EmbeddedPostgres(folder) as server:
        fill(server)
    (folder / "data" / "elsewhere").mkdir(mode=0o700)
    server_user().give(folder / "data" / "elsewhere")
    prefix = [word for word in server_user().prefix if not word.startswith("--pdeathsig")]
    command = [*prefix, find_installation() / "bin" / "postgres", "-D", folder / "data", "--listen_addresses="]
    log = (tmp_path / "log").open("wb")
    orphan = subprocess.Popen([*command, "--unix_socket_directories=elsewhere"], stderr=log)
    try:
        wait_for((folder / "data" / "elsewhere" / ".s.PGSQL.5432").exists)
        with EmbeddedPostgres(folder) as server:
            wait_for(lambda: orphan.poll() is not None)
            assert count(server) == 1000
    finally:
        orphan.kill()
        orphan.wait()
        log.close()


def test_what_a_killed_start_left_is_no_obstacle(tmp_path):
    folder = tmp_path / "postgres"
    (folder / "data.partial" / "base").mkdir(parents=True)
    (folder / "data.partial" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(folder):
        assert not (folder / "data.partial").exists()
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        (folder / "data" / "postmaster.pid").write_text(f"{bystander.pid}\n{folder / 'data'}\n0\n5432\n\n\n")
        with EmbeddedPostgres(folder) as server:
            assert execute(server, "SELECT 1", "postgres") == [(1,)]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_it_comes_back_where_its_sockets_were_swept_away(server, folder):
    shutil.rmtree(socket_folder(folder / "data", ".s.PGSQL.5432").parent)
    server.start()
    assert execute(server, "SELECT 1", "postgres") == [(1,)]


def test_sockets_never_lie_in_what_is_somebody_elses(tmp_path):
    outer = socket_folder(tmp_path / "postgres" / "data", ".s.PGSQL.5432").parent
    (tmp_path / "theirs").mkdir()
    outer.symlink_to(tmp_path / "theirs")
    server = EmbeddedPostgres(tmp_path / "postgres")
    try:
        with pytest.raises(MissingDependency, match="is no folder of this user"):
            server.start()
        assert server.pid is None
    finally:
        outer.unlink()
        server.stop()


def test_the_binaries_and_the_data_may_lie_deep_and_where_only_the_owner_can_go(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    wheel = find_installation().parent
    for part in (find_installation(), wheel.with_name(f"{wheel.name}.libs")):
        if part.exists():
            shutil.copytree(part, closed / part.relative_to(wheel.parent), copy_function=_link)
    folder = closed / ("deep" * 20) / ("deeper" * 20) / "postgres"
    folder.parent.mkdir(parents=True)
    with EmbeddedPostgres(folder, closed / find_installation().relative_to(wheel.parent)) as server:
        server.ensure_database("mesa", ["vector"])
        assert len(str(folder)) > 107
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not ROOT or shutil.which("setpriv") is None, reason="only root can become somebody else")
def test_it_runs_for_somebody_who_is_not_root():
    daemon = pwd.getpwnam("daemon")
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, daemon.pw_uid, daemon.pw_gid)
        reading = "-all,+dac_read_search"  # for Python itself may lie where only root can go
        someone = ["setpriv", f"--reuid={daemon.pw_uid}", f"--regid={daemon.pw_gid}", "--clear-groups"]
        someone += ["--securebits=+no_setuid_fixup", f"--inh-caps={reading}", f"--ambient-caps={reading}"]
        command = [*someone, sys.executable, "-c", OWNER, str(Path(home, "postgres")), "0"]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        assert gone(int(done.stdout))
        assert Path(home, "postgres", "data").stat().st_uid == daemon.pw_uid


def test_what_it_said_last_is_told_when_it_does_not_start(tmp_path):
    folder = tmp_path / "postgres"
    with EmbeddedPostgres(folder):
        pass
    (folder / "data" / "PG_VERSION").write_text("12\n")
    with pytest.raises(MissingDependency, match="initialized by PostgreSQL version 12"):
        EmbeddedPostgres(folder).start()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
