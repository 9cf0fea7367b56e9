"""The baselines that need no language model, on cases worked by hand."""

from typing import Any

import numpy as np
import pytest

from mesa_pipeline.baselines import BASELINES, BaselineContext
from mesa_pipeline.baselines.texts import first_tokens, last_tokens, pieces, token_pieces
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.types import Step, Trajectory
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder


def system(settings: Settings, code: str, **changes: Any) -> Any:
    section = getattr(settings.baselines, code).model_copy(update=changes)
    changed = settings.model_copy(update={"baselines": settings.baselines.model_copy(update={code: section})})
    return BASELINES[code].create(BaselineContext(changed, HashingEmbedder, Words()))


def history(*observations: str, kind: Any = "agent") -> Trajectory:
    return Trajectory("t", "find the cup", tuple(Step(n, "look", text) for n, text in enumerate(observations)), kind)


def test_texts_are_cut_to_size() -> None:
    assert pieces("abcde", 2) == ["ab", "cd", "e"]
    assert pieces("", 2) == []
    assert first_tokens("one two three", 2, Words()).split() == ["one", "two"]
    assert last_tokens("one two three", 2, Words()).split() == ["two", "three"]
    assert first_tokens("one two", 5, Words()) == "one two"
    assert last_tokens("one", 0, Words()).strip() == ""


class Letters:
    """Counts characters, and how many it was shown in all."""

    name = "letters"
    shown = 0

    def count(self, text: str) -> int:
        self.shown += len(text)
        return len(text)


def test_a_long_text_is_cut_in_time_that_grows_with_its_length() -> None:
    text, counter = "".join(chr(97 + n % 26) for n in range(100_003)), Letters()
    found = token_pieces(text, 100, counter)
    assert "".join(found) == text
    assert {len(piece) for piece in found} == {100, 3}
    assert counter.shown < 20 * len(text) * 4
    for limit in (1, 7, 99_999, 100_003, 200_000):
        assert first_tokens(text, limit, Letters()) == text[:limit]
        assert last_tokens(text, limit, Letters()) == text[-limit:]


def test_the_window_keeps_the_most_recent_history(settings: Settings) -> None:
    # each record is "Step n / Action: look / Observation: x y z": 2 + 2 + 4 words
    whole = system(settings, "long_context", window_tokens=100, reserved_tokens=0, break_tokens=0)
    memory = whole.build(history("a b c", "d e f", "g h i"))
    assert (memory.steps, memory.truncated) == ((0, 1, 2), False)

    cut = system(settings, "long_context", window_tokens=24, reserved_tokens=4, break_tokens=0)
    memory = cut.build(history("a b c", "d e f", "g h i"))
    assert memory.steps == (0, 1, 2)
    assert memory.records[0].split() == ["Observation:", "a", "b", "c"]
    assert memory.truncated
    assert cut.retrieve(memory, "anything").truncated

    assert system(settings, "long_context", window_tokens=16, reserved_tokens=0, break_tokens=0).build(
        history("a b c", "d e f", "g h i")
    ).steps == (1, 2)


def test_pieces_are_ranked_and_none_is_left_out_for_a_low_score(settings: Settings) -> None:
    bm25 = system(settings, "bm25", chunk_chars=40, top_k=2)
    memory = bm25.build(history("a red cup", "nothing", "a blue cup here and there and everywhere"))
    assert list(memory.steps) == [0, 0, 1, 2, 2]
    assert all(len(text) <= 40 for text in memory.texts)
    found = bm25.retrieve(memory, "everywhere")
    assert found.items[0].steps == (2,)
    assert len(found.items) == 2
    lonely = bm25.build(history("cup"))
    (only,) = bm25.retrieve(lonely, "cup").items
    assert only.score < 0


def test_the_task_and_the_steps_are_units(settings: Settings) -> None:
    dense = system(settings, "flat_dense", top_k=3, dialogue_top_k=1)
    memory = dense.build(history("red cup", "green door"))
    assert memory.steps == (None, 0, 1)
    found = dense.retrieve(memory, "find the cup")
    assert found.items[0].text == "Task: find the cup"
    assert found.items[0].steps == ()
    scores = [item.score for item in found.items]
    assert scores == sorted(scores, reverse=True)

    talk = dense.build(history("red cup", "green door", kind="dialogue"))
    assert talk.steps == (0, 1)
    assert len(dense.retrieve(talk, "cup").items) == 1


def test_only_the_first_tokens_are_embedded(settings: Settings) -> None:
    dense = system(settings, "flat_dense", max_tokens=6)
    long, short = dense.build(history("red cup and much more")), dense.build(history("red cup and other things"))
    assert np.array_equal(long.vectors, short.vectors)
    assert "much more" in long.texts[1]


def test_another_embedder_is_refused(settings: Settings) -> None:
    class Other(HashingEmbedder):
        name = "other"

    dense = system(settings, "flat_dense")
    stored = dense.encode(dense.build(history("red cup")))
    other = BASELINES["flat_dense"].create(BaselineContext(settings, Other, Words()))
    with pytest.raises(ArtifactError, match=r"hashing-32.*other"):
        other.decode(stored)
