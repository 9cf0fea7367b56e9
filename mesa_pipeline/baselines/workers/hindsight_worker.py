"""Runs Hindsight over a PostgreSQL of its own, one bank an episode."""

import asyncio
import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from serving import serve

NOBODY = 65534
INSTANCE, OWNER = "mesa", "hindsight"
FACT_TYPES = ["world", "experience"]
LOST = "it was changed or lost; remove the dataset's folder memories/hindsight, then run the same command again"
LOOP = asyncio.new_event_loop()


class Database:
    """The PostgreSQL that pg0 bundles; its data lies in the worker's home. Where root runs it, it runs as nobody."""

    def __init__(self, home: Path) -> None:
        self._home = home / "pg0"
        self._lock = (home / "database.lock").open("a")
        self._is_ours = False
        self._port = 0

    @property
    def is_up(self) -> bool:
        """Whether something answers where it was started."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def start(self) -> str:
        """Start it, on a free port of the loopback, and again on the same; returns its address.

        One that a dead worker left running is stopped first.

        Raises:
            RuntimeError: Another worker uses the same data.
        """
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RuntimeError(f"another process uses the database in {self._home}; wait for it, or stop it") from error
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _give(self._home)
        self._is_ours = True
        self._port = self._port or free_port()
        self.stop()
        account = ["--username", OWNER, "--password", OWNER, "--database", OWNER]
        self._pg0("start", "--name", INSTANCE, "--port", str(self._port), *account, "-c", "listen_addresses=127.0.0.1")
        return f"postgresql://{OWNER}:{OWNER}@127.0.0.1:{self._port}/{OWNER}"

    def stop(self) -> None:
        """Stop it, if it runs for this process."""
        if self._is_ours:
            self._pg0("stop", "--name", INSTANCE, check=False)

    def _pg0(self, *arguments: str, check: bool = True) -> None:
        import pg0

        program = str(Path(pg0.__file__).parent / "bin" / "pg0")
        command = [*self._as_nobody(), program, *arguments]
        with tempfile.TemporaryDirectory(dir=self._home) as temporary:  # pg0 leaves folders there, one with the password
            _give(Path(temporary))
            own = {**os.environ, "HOME": str(self._home), "TMPDIR": temporary}
            done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"pg0 {arguments[0]}: {(done.stdout + done.stderr)[-1000:]}")

    def _as_nobody(self) -> list[str]:
        """PostgreSQL refuses root. The capability lets nobody through folders that only root may enter."""
        if os.geteuid() != 0:
            return []
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise RuntimeError("PostgreSQL cannot run as root, and setpriv (util-linux) is not there to run it as another user")
        capabilities = "-all,+dac_read_search"
        user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        kept = [f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}", "--securebits=+no_setuid_fixup"]
        return [setpriv, *user, *kept]


class Banks:
    """The engine, opened on first use."""

    def __init__(self) -> None:
        self._database = Database(Path(os.environ["HOME"]))
        self._engine: Any = None

    def retain(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Fill a bank anew with ``documents``, each with ``id``, ``text`` and ``date``; returns how many facts it holds."""
        self.forget(request)
        engine, context = self._opened(), _context()
        contents = [
            {
                "content": document["text"],
                "document_id": document["id"],
                "context": request["task"],
                "event_date": datetime.fromisoformat(document["date"]),
            }
            for document in request["documents"]
        ]
        if contents:
            LOOP.run_until_complete(
                engine.retain_batch_async(bank_id=request["bank"], contents=contents, request_context=context)
            )
        return {"facts": self._count(request["bank"])}

    def forget(self, request: Mapping[str, Any]) -> None:
        """Delete a bank with all that it holds, if there is one."""
        LOOP.run_until_complete(self._opened().delete_bank(request["bank"], request_context=_context()))

    def recall(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What is recalled of a bank with so many ``facts`` for a ``question``, best first, up to ``max_tokens``."""
        engine = self._opened()  # before anything of the package is imported: it reads its settings then
        from hindsight_api.engine.memory_engine import Budget

        held = self._count(request["bank"])
        if held != request["facts"]:
            raise LookupError(f"bank {request['bank']} holds {held} facts and not {request['facts']}: {LOST}")
        recalled = LOOP.run_until_complete(
            engine.recall_async(
                request["bank"],
                request["question"],
                budget=Budget.HIGH,
                max_tokens=request["max_tokens"],
                fact_type=FACT_TYPES,
                question_date=datetime.fromisoformat(request["date"]),
                request_context=_context(),
            )
        )
        return [{"text": fact.text, "document": fact.document_id, "type": fact.fact_type} for fact in recalled.results]

    def close(self) -> None:
        """Stop the engine and the database."""
        if self._engine is not None:
            LOOP.run_until_complete(self._engine.close())
            self._engine = None
        self._database.stop()

    def stop_at_once(self) -> None:
        """Stop the database alone, from any thread."""
        self._database.stop()

    def _opened(self) -> Any:
        if self._engine is not None and not self._database.is_up:
            self._database.start()  # it was killed; the package finds it where it was
        if self._engine is None:
            os.environ["HINDSIGHT_API_DATABASE_URL"] = self._database.start()
            from hindsight_api import MemoryEngine

            engine = MemoryEngine()
            LOOP.run_until_complete(engine.initialize())
            self._engine = engine
        return self._engine

    def _count(self, bank: str) -> int:
        async def count() -> int:
            import asyncpg

            connection = await asyncpg.connect(os.environ["HINDSIGHT_API_DATABASE_URL"])
            try:
                query = "select count(*) from memory_units where bank_id = $1 and fact_type = any($2)"
                return int(await connection.fetchval(query, bank, FACT_TYPES))
            finally:
                await connection.close()

        return LOOP.run_until_complete(count())


def _give(folder: Path) -> None:
    """Let PostgreSQL write there."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)


def free_port() -> int:
    """A port of the loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _context() -> Any:
    from hindsight_api.models import RequestContext

    return RequestContext(internal=True)


def main() -> None:
    """Serve until the driver is done."""
    asyncio.set_event_loop(LOOP)
    banks = Banks()
    methods = {"retain": banks.retain, "recall": banks.recall, "forget": banks.forget}
    serve(methods, at_end=banks.close, on_death=banks.stop_at_once)


if __name__ == "__main__":
    main()
