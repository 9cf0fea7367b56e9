"""What can be seen of the services from outside: processes, what those listen on, and what stands in databases and files."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg
from psycopg import sql

from mesa_pipeline.services.record import OwnerStatus

COLUMNS = """
SELECT table_schema, table_name, column_name FROM information_schema.columns JOIN information_schema.tables
USING (table_schema, table_name) WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')
"""


class Cell(NamedTuple):
    """A value of a table, as text."""

    column: str
    text: str


def everyone(status: OwnerStatus) -> list[psutil.Process]:
    """The owner and all below it."""
    owner = psutil.Process(status.owner.pid)
    return [owner, *owner.children(recursive=True)]


def command_line(process: psutil.Process) -> list[str]:
    """Of a process that may have ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def connections(process: psutil.Process) -> list[Any]:
    """Of a process that may have ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        return process.net_connections("inet")
    return []


def cells(database: str) -> Iterator[Cell]:
    """Every value in every table of the database at an address, whatever its type."""
    with psycopg.connect(database) as connection:
        for schema, table, column in connection.execute(COLUMNS).fetchall():
            values = sql.SQL("SELECT {column} FROM {table} WHERE {column} IS NOT NULL").format(
                column=sql.Identifier(column), table=sql.Identifier(schema, table)
            )
            yield from (Cell(f"{table}.{column}", _as_text(value)) for (value,) in connection.execute(values))


def columns_with(text: str, among: Sequence[Cell]) -> set[str]:
    """The columns in which a text stands."""
    return {cell.column for cell in among if text in cell.text}


def files_with(text: str, folder: Path) -> list[str]:
    """The files below a folder in which a text stands, in order."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [str(path.relative_to(folder)) for path in files if text.encode() in path.read_bytes()]


def _as_text(value: object) -> str:
    """Dagster compresses some of what it keeps."""
    if not isinstance(value, bytes):
        return str(value)
    with suppress(zlib.error):
        value = zlib.decompress(value)
    return value.decode("latin-1")
