"""MemoRAG's retrieval, with a scripted memory: two requests a question, what counts as a clue, what is looked up."""

from typing import Any

import pytest

from mesa_pipeline.baselines.memorag import MemoRag, read_clues
from mesa_pipeline.baselines.passages import in_tokens
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm.metering import MeteredEmbedder, metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.types import Step, Trajectory
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder

HISTORY = Trajectory("t", "find it", tuple(Step(n, f"look at thing{n}", f"it is colour{n}") for n in range(12)))


def asked(settings: Settings, *replies: Any, **changes: Any) -> Any:
    model = ScriptedModel(replies)
    changed = settings.baselines.memorag.model_copy(update={"chunk_tokens": 10, "memory_tokens": 1000, **changes})
    embedder = MeteredEmbedder(HashingEmbedder(), Words())
    system = MemoRag(changed, metered_chat(lambda role, schema, max_tokens: model), lambda: embedder, Words())
    memory = system.build(HISTORY)
    with metered() as meter:
        evidence = system.retrieve(memory, "Which colour has thing3?")
    return evidence, model.asked, meter.cost, memory


def test_two_requests_a_question_and_every_clue_is_looked_up(settings: Settings) -> None:
    spans, queries = "Step 3 look at thing3\nit is colour3 now", "- What is the colour of thing9?\nhm"
    evidence, conversations, cost, _ = asked(settings, spans, queries, top_k=1, min_words=3)
    assert cost.calls == 2
    assert cost.notes == {"clues": 3}
    assert cost.embedded_texts == 4  # three clues and the question
    steps = [item.steps for item in evidence.items]
    assert steps == sorted(steps)
    assert (3,) in steps
    assert all("thing0" in conversation[0].content for conversation in conversations)


def test_a_memory_with_nothing_to_say_leaves_the_question(settings: Settings) -> None:
    evidence, _, cost, _ = asked(settings, "", "no\n\nnot three", top_k=2)
    assert (cost.calls, cost.embedded_texts, cost.notes) == (2, 1, {})
    assert len(evidence.items) == 2


def test_clues_have_words_and_are_said_once() -> None:
    assert read_clues("1. one two three four\n* one two three four\n\nonly three words\n<think>a b c d</think>", 4) == [
        "one two three four"
    ]
    dated = ["2023-05-01 he left for Rome", "12 cups stand on it", "-5 degrees were measured outside"]
    assert read_clues("\n".join(f"- {line}" for line in dated), 4) == dated
    assert read_clues("\n".join(dated), 4) == dated


def test_so_many_clues_and_no_more(settings: Settings) -> None:
    many = "\n".join(f"clue number {n} about thing" for n in range(50))
    assert asked(settings, many, many, max_clues=3)[2].notes == {"clues": 6}


def test_the_oldest_is_forgotten_first(settings: Settings) -> None:
    *_, memory = asked(settings, "", "", memory_tokens=9)
    assert memory.truncated
    assert "thing11" in memory.remembered
    assert "thing0" not in memory.remembered
    assert len(memory.remembered.split()) == 9


def test_chunks_are_of_so_many_tokens() -> None:
    chunks = in_tokens([*HISTORY.steps[:3], Step(3, "word " * 20, "")], 20, Words())
    assert all(len(chunk.text.split()) <= 20 for chunk in chunks)
    assert [chunk.steps for chunk in chunks] == [(0, 1), (2,), (3,), (3,)]


def test_no_reply_is_no_evidence_but_a_failure(settings: Settings) -> None:
    with pytest.raises(ModelError):
        asked(settings, "a b c d", ModelError("busy"))
