"""Traces of questions in MLflow: all on one experiment, under ids of their own, so that recording one again changes nothing."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Span as MlflowSpan
from mlflow.tracing.client import TracingClient

from mesa_pipeline.tracking.traces import Span, Trace

TRACES_EXPERIMENT = "asked"
TRACES_PER_CALL = 50
TRACES_PER_PAGE = 500
ID_PREFIX = "tr-"
SHOWN_AS_TAGS = ("structures", "evidence_tokens", "trajectory")


def record_traces(client: MlflowClient, uri: str, experiment: str, traces: Sequence[Trace]) -> Iterator[int]:
    """Record those that are not there yet, oldest first, some at a time in one transaction.

    Args:
        client: A client of the place.
        uri: The place of record.
        experiment: Id of the experiment.
        traces: The traces.

    Yields:
        How many more are recorded.
    """
    there = _ids(client, experiment)
    new = [trace for trace in traces if trace.id not in there]
    writer = TracingClient(uri)
    for first in range(0, len(new), TRACES_PER_CALL):
        some = new[first : first + TRACES_PER_CALL]
        writer.log_spans(experiment, [span for trace in some for span in _spans(trace)])
        yield len(some)


def _ids(client: MlflowClient, experiment: str) -> set[str]:
    found: set[str] = set()
    token = None
    while True:
        page = client.search_traces(locations=[experiment], max_results=TRACES_PER_PAGE, page_token=token, include_spans=False)
        found |= {trace.info.trace_id.removeprefix(ID_PREFIX) for trace in page}
        token = page.token
        if not token:
            return found


def _spans(trace: Trace) -> list[MlflowSpan]:
    return [_span(trace.id, position, span) for position, span in enumerate(trace.spans)]


def _span(trace: str, position: int, span: Span) -> MlflowSpan:
    attributes: dict[str, Any] = {
        "mlflow.traceRequestId": f"{ID_PREFIX}{trace}",
        "mlflow.spanType": span.kind,
        "mlflow.spanInputs": span.inputs,
        "mlflow.spanOutputs": span.outputs,
        **span.attributes,
    }
    if "model" in span.attributes:
        attributes["mlflow.llm.model"] = span.attributes["model"]
    if span.tokens:
        read, written = span.tokens["read"], span.tokens["written"]
        usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        attributes["mlflow.chat.tokenUsage"] = usage
    if span.parent is None:
        shown = {f"mlflow.traceTag.{name}": str(span.attributes[name]) for name in SHOWN_AS_TAGS if name in span.attributes}
        attributes |= shown
    return MlflowSpan.from_dict(
        {
            "trace_id": _base64(trace),
            "span_id": _span_id(trace, position),
            "parent_span_id": None if span.parent is None else _span_id(trace, span.parent),
            "name": span.name,
            "start_time_unix_nano": span.started,
            "end_time_unix_nano": span.ended,
            "events": [],
            "status": {"code": "STATUS_CODE_ERROR" if span.error else "STATUS_CODE_OK", "message": span.error},
            "attributes": {name: json.dumps(value) for name, value in attributes.items()},
        }
    )


def _span_id(trace: str, position: int) -> str:
    return _base64(hashlib.sha256(f"{trace}/{position}".encode()).hexdigest()[:16])


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode("ascii")
