import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.tracking.traces import MAX_TEXT_CHARS, TraceJournal, TraceRecorder

NANOSECONDS = 10**9
HOSTILE = ["\x00", "\ud800", "\u202e", "{}", "x" * 10**6, ""]


def asked(number: int, answer: str = "a key"):
    """A trace in which each span lasts a second."""
    ticks = itertools.count(1_700_000_000 * NANOSECONDS, NANOSECONDS)
    recorder = TraceRecorder(lambda: f"{number:032x}", lambda: next(ticks))
    with recorder.span("ask", "CHAIN", question="What is in it?") as whole:
        with recorder.span("answer", "LLM") as answering:
            answering.has(model="extractive")
            answering.spent(120, 3)
        whole.gave(answer=answer)
        whole.has(structures="S+T", evidence_tokens=120)
    return recorder.trace


def test_spans_say_what_they_are_part_of_and_how_long_they_took():
    whole, part = asked(1).spans
    assert (whole.parent, part.parent) == (None, 0)
    assert (whole.ended - whole.started, part.ended - part.started) == (3 * NANOSECONDS, NANOSECONDS)


def test_a_step_that_fails_says_why_and_what_it_was_part_of_too():
    recorder = TraceRecorder()
    with pytest.raises(ValueError, match="no"), recorder.span("ask", "CHAIN"), recorder.span("select", "CHAIN"):
        raise ValueError("no")
    assert [span.error for span in recorder.trace.spans] == ["ValueError: no"] * 2
    assert all(span.ended >= span.started > 0 for span in recorder.trace.spans)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_any_text_is_kept_in_a_form_and_size_that_any_database_holds(tmp_path, text):
    journal = TraceJournal(tmp_path / "asked" / "traces.jsonl")
    journal.append(asked(1, answer=text))
    (found,) = journal.read()
    kept = found.spans[0].outputs["answer"]
    kept.encode("utf-8")
    assert "\x00" not in kept
    assert len(kept) < 2 * MAX_TEXT_CHARS


def test_what_was_kept_is_read_though_a_process_died_while_writing(tmp_path):
    journal = TraceJournal(tmp_path / "traces.jsonl")
    journal.append(asked(1))
    with journal.path.open("ab") as file:
        file.write(b'{"id": "torn", "spans": [')
    journal.append(asked(2))
    assert journal.read() == [asked(1), asked(2)]


def test_many_may_write_at_once(tmp_path):
    journal = TraceJournal(tmp_path / "traces.jsonl")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: journal.append(asked(number, "x" * 1500)), range(64)))
    assert sorted(trace.id for trace in journal.read()) == [f"{number:032x}" for number in range(64)]


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "asked").write_text("a file")
    with pytest.raises(ArtifactError, match="cannot write"):
        TraceJournal(tmp_path / "asked" / "traces.jsonl").append(asked(1))


def test_there_may_be_none(tmp_path):
    assert TraceJournal(tmp_path / "traces.jsonl").read() == []


def test_traces_come_into_mlflow_once(tracker, client):
    traces = [asked(number) for number in range(1, 4)]
    assert sum(tracker.traces(traces[:2])) == 2
    assert sum(tracker.traces(traces)) == 1
    assert sum(tracker.traces(traces)) == 0

    experiment = client.get_experiment_by_name("asked")
    found = {trace.info.trace_id: trace for trace in client.search_traces(locations=[experiment.experiment_id])}
    assert sorted(found) == [f"tr-{number:032x}" for number in range(1, 4)]
    first = found[f"tr-{1:032x}"]
    assert (first.info.execution_duration, first.info.tags["structures"]) == (3000, "S+T")
    assert json.loads(first.info.response_preview) == {"answer": "a key"}
    assert json.loads(first.info.trace_metadata["mlflow.trace.tokenUsage"])["total_tokens"] == 123
    whole, part = sorted(first.data.spans, key=lambda span: span.start_time_ns)
    assert (part.name, part.span_type, part.parent_id) == ("answer", "LLM", whole.span_id)
    assert part.attributes["model"] == "extractive"
