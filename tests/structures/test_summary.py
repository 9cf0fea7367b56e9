"""S: segments, the builder strategy's seam, and what is returned."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.structures.base import StoredMemory, StructureContext
from mesa_pipeline.structures.summary import SummaryMemory, cited_steps
from mesa_pipeline.types import Step, Trajectory

REPOSITORY = Path(__file__).resolve().parents[2]


class Telling:
    """A strategy that says which steps it saw, so that segmentation shows in the text."""

    def __init__(self, reply: str | None = None) -> None:
        self.reply = reply
        self.calls: list[tuple[list[int], int | None]] = []

    def identity(self) -> Mapping[str, Any]:
        return {"kind": "telling"}

    def summarize(self, task: str, steps: Sequence[Step], preceding: Step | None) -> str:
        self.calls.append(([step.index for step in steps], preceding.index if preceding else None))
        return self.reply if self.reply is not None else "\n".join(f"Step {step.index}: seen" for step in steps)


def trajectory(*observations: str) -> Trajectory:
    return Trajectory("t", "task", tuple(Step(index, "act", text) for index, text in enumerate(observations)))


def test_each_segment_is_summarised_on_its_own_with_the_step_before_it() -> None:
    strategy = Telling()
    SummaryMemory(strategy, window_chars=100, max_chars=1000).build(trajectory("a", "b" * 500, "c", "d"))
    assert strategy.calls == [([0], None), ([1], 0), ([2, 3], 1)]


def test_retrieve_returns_every_segment_in_time_order_whatever_the_question() -> None:
    structure = SummaryMemory(Telling(), window_chars=100, max_chars=1000)
    memory = structure.build(trajectory("a", "b" * 500, "c", "d"))
    evidence = structure.retrieve(memory, "what happened at step 1?")
    assert evidence == structure.retrieve(memory, "")
    assert [item.steps for item in evidence.items] == [(0,), (1,), (2, 3)]
    assert [item.text for item in evidence.items] == ["Step 0: seen", "Step 1: seen", "Step 2: seen\nStep 3: seen"]
    assert not any(item.is_record for item in evidence.items)


def test_a_segment_is_never_lost() -> None:
    structure = SummaryMemory(Telling(reply=" \n "), window_chars=50, max_chars=300)
    evidence = structure.retrieve(structure.build(trajectory("a" * 60, "b" * 60)), "")
    assert [item.steps for item in evidence.items] == [(0,), (1,)]


def test_a_strategy_that_runs_on_is_cut() -> None:
    structure = SummaryMemory(Telling(reply="the same sentence again. " * 500), window_chars=8192, max_chars=300)
    evidence = structure.retrieve(structure.build(trajectory("a")), "")
    assert len(evidence.items[0].text) <= 300


def test_only_line_beginnings_cite_steps() -> None:
    steps = [Step(index, "", "") for index in range(2, 9)]
    assert cited_steps("Step 2: went to step 7\nSteps 4-5: up; down\nas Step 6 said\nStep 99: no", steps) == (2, 4, 5)


@pytest.mark.parametrize("observations", [(), ("",), ("", "", ""), ("\x00\ud83d {a} \u202eabc",)])
def test_odd_trajectories_build_and_survive_storage(observations: tuple[str, ...], settings: Settings) -> None:
    structure = SummaryMemory.create(StructureContext(settings, embedder=_no_embedder))
    steps = tuple(Step(index, "", text) for index, text in enumerate(observations))
    memory = structure.build(Trajectory("t", "", steps))
    payload = json.loads(json.dumps(structure.encode(memory).payload))
    assert structure.retrieve(structure.decode(StoredMemory(payload)), "q") == structure.retrieve(memory, "q")
    assert bool(memory.segments) == bool(steps)


def test_identities_change_with_what_they_stand_for() -> None:
    def identities(**changes: int) -> str:
        structure = SummaryMemory(Telling(), **{"window_chars": 100, "max_chars": 300, **changes})
        return json.dumps([dict(structure.build_identity()), dict(structure.retrieve_identity())])

    assert len({identities(), identities(window_chars=101), identities(max_chars=301)}) == 3


SCRIPT = """
import sys, json
from pathlib import Path
from mesa_pipeline.config import load_settings
from mesa_pipeline.structures import STRUCTURES
from mesa_pipeline.structures.base import StructureContext
from mesa_pipeline.types import Step, Trajectory
structure = STRUCTURES[sys.argv[2]].create(StructureContext(load_settings(Path(sys.argv[1]), environment={}), embedder=None))
pairs = [("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a book 2."), ("take book 2", '{"held": "book 2"}'),
    ("run: {\\"cmd\\": \\"ls a/b.py\\"}", "Error: no such file a/b.py")]
steps = [Step(index, *pair) for index, pair in enumerate(pairs)]
print(json.dumps(structure.encode(structure.build(Trajectory("t", "find the book", tuple(steps)))).payload, sort_keys=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", ["S", "G"])
def test_the_memory_is_the_same_under_any_hash_seed(code: str) -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(REPOSITORY / "params.yaml"), code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "77")
    }
    assert len(outputs) == 1


def _no_embedder() -> Any:
    raise AssertionError("no embedder is needed")
