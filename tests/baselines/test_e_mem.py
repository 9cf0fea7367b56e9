"""E-Mem's blocks, router and readers, worked by hand, with a scripted model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mesa_pipeline.baselines.e_mem import EMem
from mesa_pipeline.baselines.e_mem_routing import Routing, cut_blocks, route
from mesa_pipeline.config import Settings
from mesa_pipeline.llm.metering import metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.stores.bm25 import Bm25Index
from mesa_pipeline.types import Step, Trajectory
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder

# "Step n / Action: go / Observation: thingN w w w" has 2 + 2 + 5 = 9 words
STEPS = [Step(n, "go", f"thing{n} w w w") for n in range(10)]


def asked(settings: Settings, reply: Any, question: str = "Where is thing1?", steps: Sequence[Step] = STEPS) -> Any:
    model = ScriptedModel(lambda messages, seed: reply(messages[0].content))
    changed = settings.baselines.e_mem.model_copy(update={"block_tokens": 27, "overlap": 0.4})
    system = EMem(changed, metered_chat(lambda role, schema, max_tokens: model), HashingEmbedder, Words(), 4)
    with metered() as building:
        memory = system.build(Trajectory("t", "", tuple(steps)))
    with metered() as asking:
        evidence = system.retrieve(memory, question)
    return evidence, memory, building.cost, asking.cost


def test_blocks_close_when_full_and_repeat_whole_steps() -> None:
    blocks = cut_blocks(STEPS, 27, 0.4, Words())
    assert [block.steps for block in blocks] == [(0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8), (8, 9)]
    assert [block.is_closed for block in blocks] == [True, True, True, True, False]
    assert [block.steps for block in cut_blocks(STEPS[:9], 27, 0.0, Words())] == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
    assert [block.steps for block in cut_blocks(STEPS[:3], 5, 0.9, Words())] == [(0,), (1,), (2,)]
    assert cut_blocks([], 27, 0.4, Words()) == ()


def test_the_router_weighs_summaries_chunks_and_words(settings: Settings) -> None:
    routing = Routing(
        summaries=("a", "b", "c"),
        summary_vectors=np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32),
        chunk_blocks=np.array([0, 0, 1, 2]),
        chunk_vectors=np.array([[1, 0], [0.6, 0.8], [0, 1], [0.6, 0.8]], dtype=np.float32),
        index=Bm25Index.build(["red", "green cup", "blue"], settings.baselines.e_mem.ranking),
    )
    query = np.array([1, 0], dtype=np.float32)
    # summaries 1, 0, 0.6; chunks mean(1, 0.6) = 0.8, 0, 0.6, which spread to 1, 0, 0.75; no word of the question in any block
    chosen = settings.baselines.e_mem.model_copy(update={"blocks_routed": 3})
    assert route(routing, "unknown", query, chosen) == [0, 2]
    # "cup" gives block 1 the whole of BM25's weight, 0.3: less than 0.7 and 0.48
    assert route(routing, "cup", query, chosen) == [0, 2, 1]
    assert route(routing, "cup", query, chosen.model_copy(update={"blocks_routed": 1})) == [0]
    nothing = np.zeros(2, dtype=np.float32)
    assert route(routing, "unknown", nothing, chosen) == [0]


def test_it_asks_as_often_as_the_mechanism_says(settings: Settings) -> None:
    def reply(prompt: str) -> str:
        return "merged" if "<report of" in prompt else "seen" if "# Question" in prompt else "summary"

    evidence, memory, building, asking = asked(settings, reply)
    assert building.calls == 4  # a summary for each closed block
    assert memory.routing.summaries == ("summary",) * 4
    routed = asking.notes["blocks read"] - 1
    assert 1 <= routed <= 5
    assert asking.calls == routed + 1 + 1  # routed, the open one, the merger
    assert [item.text for item in evidence.items] == ["merged"]


def test_keepers_with_nothing_are_left_out(settings: Settings) -> None:
    def only_the_open_one(prompt: str) -> str:
        return "thing9 is here" if "Step 9" in prompt and "# Question" in prompt else " None.\n"

    evidence, *_, asking = asked(settings, only_the_open_one)
    assert [(item.text, item.steps) for item in evidence.items] == [("thing9 is here", (8, 9))]
    assert asking.calls == asking.notes["blocks read"]  # a single report needs no merger

    evidence, *_ = asked(settings, lambda prompt: "NONE")
    assert evidence.is_empty


def test_an_episode_that_fills_no_block_is_read_whole(settings: Settings) -> None:
    evidence, memory, building, asking = asked(settings, lambda prompt: "seen", steps=STEPS[:2])
    assert (building.calls, asking.calls, len(memory.blocks)) == (0, 1, 1)
    assert evidence.items[0].steps == (0, 1)


def test_a_merger_that_says_nothing_loses_nothing(settings: Settings) -> None:
    evidence, *_, asking = asked(settings, lambda prompt: "" if "<report of" in prompt else "seen")
    assert evidence.items[0].text.count("seen") == asking.calls - 1
    assert asking.notes["empty mergers"] == 1


def test_reports_stand_in_the_order_of_the_history(settings: Settings) -> None:
    prompts: list[str] = []

    def reply(prompt: str) -> str:
        prompts.append(prompt)
        return "x"

    asked(settings, reply)
    merger = next(prompt for prompt in prompts if "<report of" in prompt)
    heads = [line for line in merger.splitlines() if line.startswith("<report of")]
    assert heads == sorted(heads)
