"""A baseline from episodes to outcomes: once, resumably, and with what it cost."""

import dataclasses
import json
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout, dump_json, read_header
from mesa_pipeline.artifacts.files import SEAL
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.stages.baselines import build_costs, read_answers, run_baseline
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.stages.systems import baseline_of
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL

FEW = ("datasets.synthetic.episodes=3", "datasets.synthetic.questions=2")


@pytest.fixture
def context(tmp_path: Path) -> StageContext:
    context = StageContext(Layout(tmp_path, "synthetic"), load_settings(REPOSITORY / "params.yaml", [*SMALL, *FEW], {}))
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


def test_nothing_is_left_of_an_episode_that_is_gone(context: StageContext) -> None:
    run_baseline(context, "bm25")
    gone = read_manifest(context.layout).episodes[-1]
    assert len(list(context.layout.root.rglob(f"{gone.key}*"))) >= 3, "the episode, its memory and its answers"
    overrides = [*SMALL, *FEW, "datasets.synthetic.episodes=2"]
    fewer = dataclasses.replace(context, settings=load_settings(REPOSITORY / "params.yaml", overrides, {}))
    ingest(fewer)
    assert run_baseline(fewer, "bm25").made == 0
    assert list(context.layout.root.rglob(f"{gone.key}*")) == []


def test_what_a_question_took_is_known_wherever_its_outcome_is(context: StageContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop between the two notes of a question: it is asked again, rather than kept as one that took no time."""

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mesa_pipeline.stages.baselines.append_cost", stop)
        with pytest.raises(KeyboardInterrupt):
            run_baseline(context, "bm25")
    assert run_baseline(context, "bm25").made == read_manifest(context.layout).question_count
    assert all(outcome.cost.seconds > 0 for outcome in read_answers(context, "bm25").values())


def test_what_it_cost_is_known(context: StageContext) -> None:
    run_baseline(context, "flat_dense")
    costs = build_costs(context, "flat_dense")
    entries = {entry.key: entry for entry in read_manifest(context.layout).episodes}
    assert set(costs) == set(entries)
    assert all(costs[key].embedded_texts in (entry.steps, entry.steps + 1) for key, entry in entries.items())
    asked = read_answers(context, "flat_dense").values()
    assert all(outcome.cost.embedded_texts == 1 and outcome.cost.seconds > 0 for outcome in asked)


@pytest.mark.parametrize(("code", "embedder"), [("bm25", None), ("flat_dense", "all-MiniLM-L6-v2")])
def test_answers_name_the_models_that_the_system_used_and_no_others(
    context: StageContext, code: str, embedder: str | None
) -> None:
    run_baseline(context, code)
    baseline = baseline_of(context.settings, context.layout, code)
    for entry in read_manifest(context.layout).episodes:
        header = read_header(context.layout.answers(code, entry.key))
        assert header is not None
        assert header["build"] == json.loads(dump_json(dict(baseline.build_identity())))
        assert header["retrieve"] == json.loads(dump_json(dict(baseline.retrieve_identity())))
        assert header["build"].get("embedder") == embedder
        assert "embedder" not in header
        assert "model" not in {*header["build"], *header["retrieve"]}


def test_what_it_cost_is_what_building_with_the_settings_took(context: StageContext) -> None:
    def with_limit(tokens: int) -> StageContext:
        overrides = [*SMALL, *FEW, f"baselines.flat_dense.max_tokens={tokens}"]
        return dataclasses.replace(context, settings=load_settings(REPOSITORY / "params.yaml", overrides, {}))

    short, long = with_limit(5), with_limit(50)
    for limited in (short, long):
        assert build_costs(limited, "flat_dense") == {}
        build(limited, "flat_dense")
    few, many = (build_costs(limited, "flat_dense") for limited in (short, long))
    assert few.keys() == many.keys()
    assert all(few[key].embedded_tokens < many[key].embedded_tokens for key in few)


def test_mistakes_are_told(context: StageContext, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="known are long_context, bm25"):
        run_baseline(context, "bm26")
    empty = StageContext(Layout(tmp_path / "empty", "synthetic"), context.settings)
    with pytest.raises(ArtifactError, match="mesa ingest"):
        run_baseline(empty, "bm25")
