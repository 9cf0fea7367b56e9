"""Replies of models, kept by exactly what changes them: a rerun is free, and a run can be replayed without any model.

The key covers model, messages, sampling and schema. Where the model is served, timeouts and retries are not part of it.
Failures are never kept, so they are asked again.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mesa_pipeline.artifacts import dump_json, fingerprint
from mesa_pipeline.artifacts.files import parse_object
from mesa_pipeline.llm import Completion
from mesa_pipeline.llm.database import Database

REPLIES = "create table if not exists replies (key text primary key, request blob not null, reply text not null)"
VECTORS = "create table if not exists vectors (key text primary key, vector blob not null)"
LITTLE_ENDIAN_FLOAT32 = np.dtype("<f4")


class ReplyCache:
    """Replies in a SQLite file, beside their requests; any number of threads and processes may share it.

    Args:
        path: The file; made with its folder on first use.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, REPLIES)

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
        packed = zlib.compress(dump_json(dict(request)).encode("ascii"))
        row = (request_key(request), packed, dump_json(asdict(completion)))
        with self._database.open() as connection:
            connection.execute("insert or ignore into replies (key, request, reply) values (?, ?, ?)", row)


class VectorCache:
    """Vectors of texts in a SQLite file, as the model gave them; any number of threads and processes may share it.

    Args:
        path: The file; made with its folder on first use.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, VECTORS)

    def get(self, model: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The vectors there are, float32, shape ``(dimensions,)``, by text.

        Raises:
            ArtifactError: The file cannot be read.
        """
        found = {}
        with self._database.open() as connection:
            for text in texts:
                query = "select vector from vectors where key = ?"
                if row := connection.execute(query, (vector_key(model, text),)).fetchone():
                    found[text] = np.frombuffer(row[0], LITTLE_ENDIAN_FLOAT32).astype(np.float32)
        return found

    def put(self, model: str, vectors: Iterable[tuple[str, np.ndarray]]) -> None:
        """Keep texts' vectors; the first one of each text is kept.

        Raises:
            ArtifactError: The file cannot be written.
        """
        rows = [(vector_key(model, text), vector.astype(LITTLE_ENDIAN_FLOAT32).tobytes()) for text, vector in vectors]
        with self._database.open() as connection:
            connection.executemany("insert or ignore into vectors (key, vector) values (?, ?)", rows)


def request_key(request: Mapping[str, Any]) -> str:
    """Fingerprint of all that changes a reply."""
    return fingerprint("chat", dict(request))


def vector_key(model: str, text: str) -> str:
    """Fingerprint of all that changes a vector."""
    return fingerprint("embedding", model, text)
