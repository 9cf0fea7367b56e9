"""The sweep under trouble: killed, failing, started twice."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from mesa_pipeline.artifacts import exclusive, read_header, read_records
from mesa_pipeline.errors import WorkspaceBusy
from mesa_pipeline.stages import sweep as stage
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.stages.sweep import is_swept, sweep
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.subsets import ALL_SUBSETS
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import MisbehavingServer
from tests.pipeline import SMALL, conclude, copy_of
from tests.stages import endpoint_model
from tests.stages.test_pipeline import contents


def outcome_lines(folder) -> int:
    """Outcomes stored by now, while a sweep replaces files under our eyes."""
    lines = 0
    for path in [*folder.glob("*.jsonl"), *folder.glob("*.partial")]:
        with suppress(FileNotFoundError):
            lines += path.read_bytes().count(b"\n") - 1
    return lines


def start_sweep(workspace, *overrides):
    arguments = [argument for override in (*SMALL, *overrides) for argument in ("--set", override)]
    command = [sys.executable, "-m", "mesa_pipeline.cli", "sweep", "--json", "--workspace", str(workspace), *arguments]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_and_run_again_it_repeats_nothing_and_ends_with_the_same_bytes(prepared, finished, tmp_path, workers):
    context = copy_of(prepared, tmp_path)
    folder = context.layout.outcomes("x").parent
    process = start_sweep(tmp_path, f"run.workers={workers}")
    deadline = time.monotonic() + 60
    while not folder.exists() or outcome_lines(folder) < 3 * len(ALL_SUBSETS):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    stored = outcome_lines(folder)
    total = read_manifest(context.layout).question_count * len(ALL_SUBSETS)
    assert 0 < stored < total, "killed too late to test anything"
    summary = sweep(context)
    assert summary.made + summary.kept == total
    assert summary.made <= total - (stored // len(ALL_SUBSETS)) * len(ALL_SUBSETS)
    assert contents(folder) == contents(finished.layout.outcomes("x").parent)


def test_a_question_that_fails_is_listed_and_only_it_is_tried_again(prepared, finished, tmp_path, monkeypatch):
    context = copy_of(prepared, tmp_path)
    real = stage.sweep_question
    broken = read_manifest(context.layout).episodes[2].id + "#1"

    def failing(question, *arguments):
        if question.id == broken:
            raise RuntimeError("the reader fell over")
        return real(question, *arguments)

    monkeypatch.setattr(stage, "sweep_question", failing)
    summary = sweep(context)
    assert len(summary.failed) == 1
    assert broken in summary.failed[0]
    assert "the reader fell over" in summary.failed[0]
    entry = read_manifest(context.layout).episodes[2]
    assert broken not in {record["question_id"] for record in read_records(context.layout.outcomes(entry.key), "x")}
    monkeypatch.setattr(stage, "sweep_question", real)
    again = sweep(context)
    assert (again.made, again.failed) == (len(ALL_SUBSETS), ())
    assert contents(context.layout.outcomes("x").parent) == contents(finished.layout.outcomes("x").parent)


def test_an_episode_whose_memory_failed_is_marked_and_never_scored(prepared, finished, tmp_path):
    """One passage of one episode broke the graph builder: no evidence of it was stored."""
    context = copy_of(prepared, tmp_path)
    entry = read_manifest(context.layout).episodes[4]
    memory = context.layout.memory("graph", entry.key)
    evidence = context.layout.evidence("graph", entry.key)
    held = evidence.read_bytes()
    memory.unlink()
    evidence.unlink()
    for _ in range(2):
        summary = sweep(context)
        [failure] = summary.failed
        assert entry.id in failure
        assert "graph evidence is missing" in failure
        assert "mesa build --structure G" in failure
        assert not is_swept(context, entry)
        assert list(read_records(context.layout.outcomes(entry.key), "x")) == []
    every = [entry.id for entry in read_manifest(context.layout).episodes]
    table = read_table(context, every)
    assert set(table.unswept) == {f"{entry.id}#{k}" for k in range(entry.question_count)}
    assert len(table.matrix) == read_manifest(context.layout).question_count - entry.question_count
    summaries = {summary.stage: summary for summary in conclude(context)}
    without = [
        facts["questions_without_outcome"] for s in summaries.values() if "questions_without_outcome" in (facts := s.facts)
    ]
    assert sum(without) == entry.question_count * len(context.settings.splits.seeds)
    page = (context.layout.report / "report.html").read_text(encoding="utf-8")
    assert f"{entry.id}#0" in page
    evidence.write_bytes(held)
    assert sweep(context).failed == ()
    assert contents(context.layout.outcomes("x").parent) == contents(finished.layout.outcomes("x").parent)


def test_what_a_killed_sweep_was_writing_goes_with_the_next(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    whole = context.layout.outcomes(read_manifest(context.layout).episodes[0].key)
    torn = whole.with_name(f".{whole.name}.partial.4711.tmp")
    torn.write_bytes(whole.read_bytes()[:100])
    sweep(context)
    assert not torn.exists()
    assert contents(context.layout.root) == contents(finished.layout.root)


def test_two_sweeps_at_once_are_refused(prepared, tmp_path):
    context = copy_of(prepared, tmp_path)
    with exclusive(context.layout), pytest.raises(WorkspaceBusy, match=str(os.getpid())):
        sweep(context)


def test_outcomes_name_the_language_models_that_had_a_part_in_them(tmp_path):
    builders = ("structures.summary.builder=llm", "structures.graph.builder=llm", "structures.temporal.checker=llm")
    with MisbehavingServer(otherwise=endpoint_model.reply) as server:
        context = endpoint_model.prepared(endpoint_model.context_of(tmp_path, server.base_url, *builders))
        assert not sweep(context).failed
    model, embedder = context.settings.llm.chat.model, context.settings.llm.embeddings.model
    for entry in read_manifest(context.layout).episodes:
        header = read_header(context.layout.outcomes(entry.key))
        assert model in header["build"]["S"]["summarizer"]["model"]
        assert all(model in name for name in header["build"]["G"]["extractor"]["models"])
        assert model in header["retrieve"]["T"]["checker"]["model"]
        assert header["build"]["V"]["embedder"] == header["build"]["T"]["embedder"] == embedder
