"""A baseline from episodes to outcomes: once, resumably, and with what it cost."""

import dataclasses
import json
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout, dump_json
from mesa_pipeline.artifacts.files import SEAL
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.stages.baselines import build_costs, read_answers, run_baseline
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.storage import read_manifest
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL


@pytest.fixture
def context(tmp_path: Path) -> StageContext:
    few = ("datasets.synthetic.episodes=3", "datasets.synthetic.questions=2")
    context = StageContext(Layout(tmp_path, "synthetic"), load_settings(REPOSITORY / "params.yaml", [*SMALL, *few], {}))
    ingest(context)
    return context


def test_every_question_is_answered_once(context: StageContext) -> None:
    total = read_manifest(context.layout).question_count
    done = run_baseline(context, "bm25")
    assert (done.made, done.kept, done.failed) == (total, 0, ())
    outcomes = read_answers(context, "bm25")
    assert len(outcomes) == total
    assert all(outcome.score is not None and outcome.tokens > 0 and outcome.steps for outcome in outcomes.values())
    again = run_baseline(context, "bm25")
    assert (again.made, again.kept) == (0, total)
    assert read_answers(context, "bm25") == outcomes


def test_other_settings_are_other_outcomes(context: StageContext) -> None:
    run_baseline(context, "bm25")
    settings = load_settings(
        REPOSITORY / "params.yaml", [*SMALL, "datasets.synthetic.episodes=3", "baselines.bm25.top_k=1"], {}
    )
    changed = dataclasses.replace(context, settings=settings)
    assert read_answers(changed, "bm25") == {}
    assert run_baseline(changed, "bm25").made > 0
    assert all(len(outcome.steps) == 1 for outcome in read_answers(changed, "bm25").values())


def test_a_run_that_was_cut_is_continued(context: StageContext) -> None:
    run_baseline(context, "bm25")
    first = read_manifest(context.layout).episodes[0]
    path = context.layout.answers("bm25", first.key)
    whole = path.read_bytes()
    header, *records = whole.splitlines(keepends=True)
    plain = {name: value for name, value in json.loads(header).items() if name != SEAL}
    journal = path.with_name(path.name + ".partial")
    journal.write_bytes(dump_json(plain).encode() + b"\n" + records[0] + records[1][:20])
    path.unlink()
    assert run_baseline(context, "bm25").made == first.question_count - 1
    assert path.read_bytes() == whole
    assert not journal.exists()


def test_what_it_cost_is_known(context: StageContext) -> None:
    run_baseline(context, "flat_dense")
    costs = build_costs(context, "flat_dense")
    entries = {entry.key: entry for entry in read_manifest(context.layout).episodes}
    assert set(costs) == set(entries)
    assert all(costs[key].embedded_texts in (entry.steps, entry.steps + 1) for key, entry in entries.items())
    asked = read_answers(context, "flat_dense").values()
    assert all(outcome.cost.embedded_texts == 1 and outcome.cost.seconds > 0 for outcome in asked)


def test_mistakes_are_told(context: StageContext, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="known are long_context, bm25"):
        run_baseline(context, "bm26")
    empty = StageContext(Layout(tmp_path / "empty", "synthetic"), context.settings)
    with pytest.raises(ArtifactError, match="mesa ingest"):
        run_baseline(empty, "bm25")
