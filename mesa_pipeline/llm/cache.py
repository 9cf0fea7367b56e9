"""Replies of language models, kept by exactly what changes them: a rerun is free, and a run can be replayed without any model.

The key covers model, messages, sampling and schema. Where the model is served, timeouts and retries are not part of it.
Failures are never kept, so they are asked again.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import dump_json, fingerprint
from mesa_pipeline.artifacts.files import parse_object
from mesa_pipeline.llm import Completion
from mesa_pipeline.llm.ledger import Database

SCHEMA = "create table if not exists replies (key text primary key, request text not null, reply text not null)"


class ReplyCache:
    """Replies in a SQLite file; any number of threads and processes may share it.

    Args:
        path: The file; made with its folder on first use.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, SCHEMA)

    def get(self, request: Mapping[str, Any]) -> Completion | None:
        """The reply to a request, ``None`` where there is none yet.

        Raises:
            ArtifactError: The file cannot be read.
        """
        with self._database.open() as connection:
            row = connection.execute("select reply from replies where key = ?", (request_key(request),)).fetchone()
        value = parse_object(row[0].encode("ascii")) if row else None
        return Completion(**value) if value is not None else None

    def put(self, request: Mapping[str, Any], completion: Completion) -> None:
        """Keep the reply to a request; the first one is kept.

        Raises:
            ArtifactError: The file cannot be written.
        """
        row = (request_key(request), dump_json(dict(request)), dump_json(asdict(completion)))
        with self._database.open() as connection:
            connection.execute("insert or ignore into replies (key, request, reply) values (?, ?, ?)", row)


def request_key(request: Mapping[str, Any]) -> str:
    """Fingerprint of all that changes a reply."""
    return fingerprint("chat", dict(request))
