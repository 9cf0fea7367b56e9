"""Tables among a run's artifacts, as MLflow's pages show them.

``MlflowClient.log_table`` would append to a table that is there; a table here is written whole.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run

from mesa_pipeline.tracking.connection import printable

TABLES_TAG = "mlflow.loggedArtifacts"
Rows = Sequence[Mapping[str, object]]


def has_tables(run: Run, tables: Mapping[str, Rows]) -> bool:
    """Whether a run has tables of these names."""
    return set(_files(tables)) <= {table["path"] for table in _known(run)}


def put_tables(client: MlflowClient, run: Run, tables: Mapping[str, Rows]) -> None:
    """Write tables, in place of those of the same names."""
    if not tables:
        return
    with tempfile.TemporaryDirectory() as folder:
        for file, rows in zip(_files(tables), tables.values(), strict=True):
            (Path(folder) / file).write_text(_split(rows), encoding="utf-8")
        client.log_artifacts(run.info.run_id, folder)
    known = {table["path"]: table for table in _known(run)} | {file: {"path": file, "type": "table"} for file in _files(tables)}
    client.set_tag(run.info.run_id, TABLES_TAG, json.dumps(list(known.values())))


def _files(tables: Mapping[str, Rows]) -> list[str]:
    return [f"{name}.json" for name in tables]


def _known(run: Run) -> list[dict[str, str]]:
    return list(json.loads(run.data.tags.get(TABLES_TAG, "[]")))


def _split(rows: Rows) -> str:
    columns = list(rows[0]) if rows else []
    return json.dumps({"columns": columns, "data": [[_plain(row[name]) for name in columns] for row in rows]})


def _plain(value: object) -> object:
    return printable(value) if isinstance(value, str) else value
