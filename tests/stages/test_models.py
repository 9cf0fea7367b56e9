"""What is opened is opened once, and signs with what changes its replies alone."""

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.evaluation import judge as judge_module
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.reading import llm as reader_module
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import kept, open_reading, structures_of
from mesa_pipeline.stages.retrieve import evidence_fingerprint
from mesa_pipeline.stages.storage import EpisodeEntry
from mesa_pipeline.stages.sweep import outcomes_fingerprint
from mesa_pipeline.structures import llm_prompts
from tests.conftest import REPOSITORY

BY_MODEL = (
    "structures.summary.builder=llm",
    "structures.graph.builder=llm",
    "structures.temporal.checker=llm",
    "reading.reader=llm",
    "evaluation.reward=llm_judge",
    "llm.embedder=endpoint",
)
ENTRY = EpisodeEntry("episode", "episode", "", "", 10, 1, (), "trajectory", "questions")
THREADS = 8


def settings_with(*overrides: str) -> Settings:
    return load_settings(REPOSITORY / "params.yaml", [*BY_MODEL, *overrides], {})


def fingerprints(workspace: Path, *overrides: str) -> dict[str, str]:
    """Keys of the memories, the evidence and the outcomes of an episode."""
    context = StageContext(Layout(workspace, "synthetic"), settings_with(*overrides))
    structures = structures_of(context.settings, workspace).values()
    memories = {f"{s.code} memory": s.memory_fingerprint(ENTRY.trajectory) for s in structures}
    evidence = {f"{s.code} evidence": evidence_fingerprint(s, ENTRY) for s in structures}
    return {**memories, **evidence, "outcomes": outcomes_fingerprint(context, ENTRY)}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name, key in before.items() if after[name] != key}


def test_threads_that_ask_at_once_get_the_same_thing_and_it_is_opened_once():
    opened: list[object] = []
    together = threading.Barrier(THREADS)

    @kept
    def inner(number: int) -> object:
        time.sleep(0.05)  # long enough for the others to ask
        opened.append(object())
        return opened[-1]

    @kept
    def outer(number: int) -> list[object]:
        return [inner(number)]

    def ask(thread: int) -> list[object]:
        together.wait()
        return outer(7) if thread % 2 else [inner(7)]

    with ThreadPoolExecutor(THREADS) as pool:
        found = [thing for things in pool.map(ask, range(THREADS)) for thing in things]
    assert len(opened) == 1
    assert found == opened * THREADS
    assert outer(7) is outer(7)
    assert outer(8) is not outer(7)


def test_readers_opened_by_several_threads_share_one_endpoint(tmp_path: Path):
    settings, layout, together = settings_with(), Layout(tmp_path, "synthetic"), threading.Barrier(THREADS)

    def ask(_: int) -> Any:
        together.wait()
        return open_reading(settings, layout)

    with ThreadPoolExecutor(THREADS) as pool:
        readings = list(pool.map(ask, range(THREADS)))
    assert len({id(reading.reader.model.model.endpoint) for reading in readings}) == 1
    assert readings[0].reader.model.model.endpoint is readings[0].reward.model.model.endpoint


@pytest.mark.parametrize(
    "override",
    [
        "llm.chat.base_url=http://elsewhere:9000/v1",
        "llm.chat.key_variable=OTHER_KEY",
        "llm.chat.timeout_seconds=5",
        "llm.chat.max_attempts=1",
        "llm.chat.backoff_seconds=9",
        "llm.chat.max_backoff_seconds=99",
        "llm.chat.max_concurrency=2",
        "llm.embeddings.base_url=http://elsewhere:9001/v1",
        "llm.embeddings.timeout_seconds=5",
        "llm.embeddings.max_concurrency=1",
        "llm.embeddings.batch_size=3",
        "llm.local.threads=2",
        "run.workers=3",
        "policies.zero_shot=true",
        "search.proposer=llm",
        "llm.roles.select.max_tokens=9",
        "llm.roles.propose.temperature=0.1",
    ],
)
def test_where_and_how_patiently_a_model_is_asked_makes_nothing_again(tmp_path: Path, override: str):
    assert changed(fingerprints(tmp_path), fingerprints(tmp_path, override)) == set()


S, G, T, V = {"S memory", "S evidence"}, {"G memory", "G evidence"}, {"T evidence"}, {"V memory", "V evidence"}


@pytest.mark.parametrize(
    ("override", "made_again"),
    [
        ("llm.chat.model=another", S | G | T),
        ("llm.chat.thinking=true", S | G | T),
        ("llm.chat.chat_template_kwargs=false", S | G | T),
        ("llm.chat.json_schema=false", G),
        ("llm.chat.context_tokens=16000", S | G | T),
        ("llm.embeddings.model=another", V | T | {"T memory"}),
        ("llm.roles.summarize.temperature=0.5", S),
        ("llm.roles.summarize.max_tokens=99", S),
        ("llm.roles.extract.temperature=0.5", G),
        ("llm.roles.check.max_tokens=99", T),
        ("llm.roles.answer.max_tokens=99", set()),
        ("llm.roles.judge.temperature=0.5", set()),
        ("evaluation.judge_asks=1", set()),
        ("evaluation.judge_constrained=true", set()),
    ],
)
def test_another_model_or_sampling_makes_again_what_comes_of_it(tmp_path: Path, override: str, made_again: set[str]):
    assert changed(fingerprints(tmp_path), fingerprints(tmp_path, override)) == {*made_again, "outcomes"}


@pytest.mark.parametrize("module", [reader_module, judge_module])
def test_another_wording_of_reader_or_judge_makes_the_outcomes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any
):
    before = fingerprints(tmp_path / "before")
    reworded = tmp_path / "prompt.md"
    reworded.write_text(Prompt.load(module.PROMPT).text + "\nThink well.", encoding="utf-8")
    monkeypatch.setattr(module, "PROMPT", reworded)
    assert changed(before, fingerprints(tmp_path / "after")) == {"outcomes"}


@pytest.mark.parametrize(
    ("prompt", "made_again"), [("summary", S), ("entities", G), ("triples", G), ("sufficiency", T), ("reminder", S | G | T)]
)
def test_another_wording_of_a_structure_makes_again_what_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str, made_again: set[str]
):
    before = fingerprints(tmp_path / "before")
    prompts = shutil.copytree(llm_prompts.FOLDER, tmp_path / "prompts")
    (prompts / f"{prompt}.md").write_text(llm_prompts.load_prompt(prompt).text + "\nThink well.", encoding="utf-8")
    monkeypatch.setattr(llm_prompts, "FOLDER", prompts)
    llm_prompts.load_prompt.cache_clear()
    try:
        after = fingerprints(tmp_path / "after")
    finally:
        llm_prompts.load_prompt.cache_clear()
    assert changed(before, after) == {*made_again, "outcomes"}
