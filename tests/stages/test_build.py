"""Building where a package keeps memories in a place of its own, and something else stands in for the package here."""

import dataclasses
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.baselines.environments import WORKERS, WorkerEnvironment
from mesa_pipeline.baselines.hindsight import Bank
from mesa_pipeline.config import load_settings
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.storage import read_manifest, read_memory
from mesa_pipeline.stages.systems import baseline_of
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL

CODE = "hindsight"
PACKAGE = """
import os, sys
from pathlib import Path

sys.path.insert(0, {workers!r})
from serving import serve

HOME = Path(os.environ["HOME"])
BANKS = HOME / "database"
BANKS.mkdir(exist_ok=True)

def retain(request):
    (BANKS / request["bank"]).touch()
    if (HOME / "fails").exists():
        raise RuntimeError("full")
    return {{"facts": 1}}

def forget(request):
    (BANKS / request["bank"]).unlink(missing_ok=True)
    if (HOME / "dies").exists():
        (HOME / "dies").unlink()
        os._exit(1)

serve({{"retain": retain, "forget": forget}})
"""
"""Banks as empty files. It fails, or dies once a bank is deleted, where a file says so."""

OpenContext = Callable[..., StageContext]


@pytest.fixture
def open_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenContext]:
    """The same workspace, with so many episodes and changed settings."""
    script = tmp_path / "package.py"
    script.write_text(PACKAGE.format(workers=str(WORKERS)))
    monkeypatch.setattr(WorkerEnvironment, "python", Path(sys.executable))
    monkeypatch.setattr(WorkerEnvironment, "script", script)
    opened: list[StageContext] = []

    def open_context(episodes: int, *overrides: str) -> StageContext:
        few = (f"datasets.synthetic.episodes={episodes}", "llm.embedder=endpoint", "llm.chat.max_concurrency=1")
        settings = load_settings(REPOSITORY / "params.yaml", [*SMALL, *few, *overrides], {})
        context = StageContext(Layout(tmp_path / "workspace", "synthetic"), settings)
        ingest(context)
        opened.append(context)
        return context

    yield open_context
    for context in opened:
        baseline_of(context.settings, context.layout, CODE).close()


def home(context: StageContext) -> Path:
    return context.layout.scratch / CODE


def banks(context: StageContext) -> set[str]:
    """What the package keeps."""
    return {path.name for path in (home(context) / "database").iterdir()}


def remembered(context: StageContext) -> set[str]:
    """What the memories name."""
    structure = baseline_of(context.settings, context.layout, CODE)
    memories: list[Bank] = [read_memory(context.layout, structure, e.key) for e in read_manifest(context.layout).episodes]
    return {memory.name for memory in memories}


def test_the_package_keeps_nothing_of_an_episode_that_is_gone(open_context: OpenContext) -> None:
    before = open_context(3)
    assert build(before, CODE).made == 3
    assert len(banks(before)) == 3
    assert banks(before) == remembered(before)
    fewer = open_context(2)
    assert build(fewer, CODE).failed == ()
    assert len(banks(fewer)) == 2
    assert banks(fewer) == remembered(fewer)


def test_nor_of_a_memory_that_another_replaced(open_context: OpenContext) -> None:
    before = open_context(2)
    build(before, CODE)
    former, changed = banks(before), open_context(2, "baselines.hindsight.chunk_chars=1000")
    assert build(changed, CODE).made == 2
    assert banks(changed) == remembered(changed)
    assert banks(changed).isdisjoint(former)


def test_nor_of_one_that_was_never_finished_but_all_of_what_it_was_to_replace(open_context: OpenContext) -> None:
    before = open_context(2)
    build(before, CODE)
    (home(before) / "fails").touch()
    changed = open_context(2, "baselines.hindsight.chunk_chars=1000")
    assert len(build(changed, CODE).failed) == 2
    assert banks(changed) == remembered(before)
    assert build(before, CODE).kept == 2


def test_what_was_killed_before_its_memory_was_written_is_forgotten(
    open_context: OpenContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    build(open_context(1), CODE)
    more = open_context(2)
    with monkeypatch.context() as patched:
        patched.setattr("mesa_pipeline.stages.build.write_memory", killed)
        with pytest.raises(KeyboardInterrupt):
            build(more, CODE)
    assert len(banks(more)) == 2
    again = open_context(1)
    assert build(again, CODE).kept == 1
    assert len(banks(again)) == 1
    assert banks(again) == remembered(again)


def test_what_was_killed_while_it_forgot_goes_on_with_it(open_context: OpenContext) -> None:
    build(open_context(3), CODE)
    fewer = open_context(1)
    (home(fewer) / "dies").touch()
    (problem,) = build(fewer, CODE).failed
    assert "former episodes" in problem
    assert "its process died" in problem
    again = build(fewer, CODE)
    assert (again.kept, again.failed) == (1, ())
    assert banks(fewer) == remembered(fewer)
    assert len(banks(fewer)) == 1


def test_another_dataset_with_the_same_episodes_keeps_its_own(open_context: OpenContext) -> None:
    one = open_context(2)
    two = dataclasses.replace(one, layout=Layout(one.layout.workspace, "twin"))
    shutil.copytree(one.layout.root / "episodes", two.layout.root / "episodes")
    for context in (one, two):
        build(context, CODE)
    build(open_context(1), CODE)
    assert len(banks(one)) == 1
    assert len(banks(two)) == 2
    assert banks(two) == remembered(two)
    baseline_of(two.settings, two.layout, CODE).close()


def test_a_memory_that_cannot_be_read_keeps_all_of_them(open_context: OpenContext) -> None:
    build(open_context(3), CODE)
    fewer = open_context(2)
    path = fewer.layout.memory(CODE, read_manifest(fewer.layout).episodes[0].key)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    (problem,) = build(fewer, CODE).failed
    assert path.name in problem
    assert len(banks(fewer)) == 3
