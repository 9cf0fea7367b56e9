"""Threads that come to a new file at the same moment."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mesa_pipeline.llm.database import Database

TOGETHER = 4
FILES = 100
"""Without waiting for one another one in thirty fails."""


def test_all_that_open_a_new_file_at_once_may_write(tmp_path: Path):
    def write(database: Database, barrier: threading.Barrier, number: int) -> None:
        barrier.wait(timeout=20)
        with database.open() as connection:
            connection.execute("insert into numbers values (?)", (number,))

    for file in range(FILES):
        database = Database(tmp_path / f"{file}.sqlite", "create table if not exists numbers (number integer)")
        barrier = threading.Barrier(TOGETHER)
        with ThreadPoolExecutor(TOGETHER) as pool:
            for written in [pool.submit(write, database, barrier, number) for number in range(TOGETHER)]:
                written.result()
        with database.open() as connection:
            assert sorted(connection.execute("select number from numbers")) == [(number,) for number in range(TOGETHER)]
