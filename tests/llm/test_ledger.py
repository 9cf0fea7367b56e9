from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.ledger import Attempt, Ledger, Spending, Usage


def test_spending_is_summed_by_phase_and_model(tmp_path: Path):
    """By hand: two models, two phases, one failure, replies from the cache apart."""
    ledger = Ledger(tmp_path / "llm" / "ledger.sqlite")
    ledger.record(Attempt("judge", "b", "1", "ok", 0.5, Usage(10, 0, 1)))
    ledger.record(Attempt("answer", "b", "2", "passing: HTTP 429: busy", 0.25))
    ledger.record(Attempt("answer", "b", "2", "ok", 1.0, Usage(100, 64, 20)))
    ledger.record(Attempt("answer", "a", "3", "ok", 2.0, Usage(7, 0, 3)))
    ledger.record_replays("answer", "b")
    ledger.record_replays("answer", "b", 4)
    ledger.record_replays("embed", "e", 2)
    assert ledger.spending() == (
        Spending("answer", "a", 1, 0, 0, 7, 0, 3, 2.0),
        Spending("answer", "b", 2, 1, 5, 100, 64, 20, 1.25),
        Spending("embed", "e", 0, 0, 2, 0, 0, 0, 0.0),
        Spending("judge", "b", 1, 0, 0, 10, 0, 1, 0.5),
    )


def test_nothing_was_spent_yet(tmp_path: Path):
    assert Ledger(tmp_path / "ledger.sqlite").spending() == ()


def test_threads_write_at_once(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.sqlite")

    def work(number: int) -> None:
        ledger.record(Attempt("answer", "m", str(number), "ok", 0.0, Usage(1, 0, 1)))
        ledger.record_replays("answer", "m")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(80)))
    assert ledger.spending() == (Spending("answer", "m", 80, 0, 80, 80, 0, 80, 0.0),)


def test_a_file_that_is_no_database_is_named(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is a note to myself, and no database at all\n" * 100)
    with pytest.raises(ArtifactError, match=r"cannot use .*ledger\.sqlite: file is not a database"):
        Ledger(path).spending()
