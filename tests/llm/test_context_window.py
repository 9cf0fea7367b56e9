import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_pipeline.llm import Message
from mesa_pipeline.llm.context_window import (
    TOKENS_PER_MESSAGE,
    conversation_tokens,
    cut_end,
    cut_middle,
    fit_conversation,
    room_once_refused,
)
from tests.llm.conftest import WordCounter


class ByteCounter:
    """A token is a byte, as in the worst text for a model."""

    name = "bytes"

    def count(self, text: str) -> int:
        return len(text.encode("utf-8"))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)


def test_a_conversation_that_fits_is_left_as_it_is():
    messages = (Message("system", "one two"), Message("user", "three"))
    assert conversation_tokens(messages, WordCounter()) == 3 + 2 * TOKENS_PER_MESSAGE
    assert fit_conversation(messages, WordCounter(), 3 + 2 * TOKENS_PER_MESSAGE) == messages


def test_instructions_and_question_outlive_the_evidence():
    evidence = "\n".join(f"step {k}" for k in range(500))
    messages = (Message("system", "answer briefly"), Message("user", f"Evidence:\n{evidence}\nQuestion: what came last?"))
    system, user = fit_conversation(messages, WordCounter(), 200)
    assert system.content == "answer briefly"
    assert user.content.startswith("Evidence:\nstep 0\n")
    assert user.content.endswith("step 499\nQuestion: what came last?")
    assert "characters left out to fit the context" in user.content


@given(st.lists(texts, min_size=1, max_size=4), st.integers(250, 900))
def test_whatever_the_messages_they_fit_where_there_is_room(contents: list[str], room: int):
    fitted = fit_conversation([Message("user", content) for content in contents], ByteCounter(), room)
    assert conversation_tokens(fitted, ByteCounter()) <= max(room, len(contents) * 75)


@pytest.mark.parametrize("room", [100, 300, 1000, 3000])
def test_the_mark_that_something_is_missing_fits_too(room: int):
    fitted = fit_conversation([Message("user", "x" * 5000)], ByteCounter(), room)
    assert 0.9 * room - 10 <= conversation_tokens(fitted, ByteCounter()) <= room


@pytest.mark.parametrize("room", [0, -5000])
def test_no_room_at_all_ends_too(room: int):
    (message,) = fit_conversation([Message("user", "x" * 10_000)], ByteCounter(), room)
    assert len(message.content) < 100


def test_the_middle_is_cut_and_counted():
    assert cut_middle("a" * 60 + "b" * 900 + "c" * 40, 100) == (
        "a" * 60 + "\n[... 900 characters left out to fit the context ...]\n" + "c" * 40
    )
    assert cut_middle("short", 5) == "short"


@given(texts, st.integers(0, 300))
def test_what_is_left_of_a_text_is_its_beginning_and_fits(text: str, max_tokens: int):
    kept = cut_end(text, ByteCounter(), max_tokens)
    assert text.startswith(kept)
    assert ByteCounter().count(kept) <= max_tokens
    if ByteCounter().count(text) <= max_tokens:
        assert kept == text


def test_a_text_of_a_million_words_is_cut_without_counting_it_whole():
    counted = []

    class Watched(WordCounter):
        def count(self, text: str) -> int:
            counted.append(len(text))
            return super().count(text)

    kept = cut_end("word " * 1_000_000, Watched(), 100)
    assert 90 <= len(kept.split()) <= 100
    assert max(counted) <= 1600


def test_what_is_kept_of_a_refused_text_goes_by_the_servers_count():
    assert room_once_refused(1000, room=900, counted=3000) == 285  # 1000 * 900/3000 * 0.95
    assert room_once_refused(1000, room=900, counted=800) == 950  # it was not the conversation alone
    assert room_once_refused(1000, room=900, counted=None) == 450
    assert room_once_refused(1000, room=900, counted=0) == 950
