"""Windows by the paper's formulas, and what R shows of them."""

import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.structures.raw import RawMemory, split_windows
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step, Trajectory


@pytest.fixture
def raw(settings: Settings) -> RawMemory:
    return RawMemory(settings.structures.raw, settings.stores.bm25, settings.evidence.max_chars_per_step)


def trajectory(*observations: str, first: int = 0) -> Trajectory:
    return Trajectory("t", "task", tuple(Step(first + k, "look", text) for k, text in enumerate(observations)))


@pytest.mark.parametrize(
    ("length", "size", "stride", "count", "last"),
    [
        (1, 3, 2, 1, (0, 1)),
        (2, 3, 2, 1, (0, 2)),
        (3, 3, 2, 1, (0, 3)),
        (10, 3, 2, 5, (8, 10)),
        (36, 3, 2, 18, (34, 36)),
        (60, 5, 4, 15, (56, 60)),
        (120, 10, 8, 15, (112, 120)),
        (192, 16, 12, 16, (180, 192)),
        (525, 16, 12, 44, (516, 525)),
    ],
)
def test_windows_follow_the_formulas(
    settings: Settings, length: int, size: int, stride: int, count: int, last: tuple[int, int]
) -> None:
    windows = split_windows(length, settings.structures.raw)
    assert len(windows) == count
    assert windows[-1] == last
    assert [window.start for window in windows] == [number * stride for number in range(count)]
    assert all(window.stop - window.start == size for window in windows[:-1])


def test_no_steps_give_no_window(settings: Settings, raw: RawMemory) -> None:
    assert split_windows(0, settings.structures.raw) == ()
    assert raw.retrieve(raw.build(trajectory()), "anything").is_empty


def test_windows_stand_in_time_order_and_show_shared_steps_once(raw: RawMemory) -> None:
    texts = [f"room {number}" for number in range(12)]
    texts[3] = "key key key"
    texts[4] = "key"
    texts[9] = "key"
    evidence = raw.retrieve(raw.build(trajectory(*texts)), "key")
    assert [item.steps for item in evidence.items] == [(2, 3, 4), (5, 6), (8, 9, 10)]
    assert all(item.is_record and item.score and item.score > 0 for item in evidence.items)
    records = [serialize_step(Step(5, "look", "room 5")).text, serialize_step(Step(6, "look", "room 6")).text]
    assert evidence.items[1].text == "\n\n".join(records)


def test_at_most_three_windows_are_shown(raw: RawMemory) -> None:
    evidence = raw.retrieve(raw.build(trajectory(*["key"] * 40)), "key")
    assert len(evidence.items) == 3


def test_without_a_positive_score_the_single_best_window_is_shown(raw: RawMemory) -> None:
    for question in ("zebra", "", "\ud800"):
        evidence = raw.retrieve(raw.build(trajectory(*["room"] * 20)), question)
        assert [item.steps for item in evidence.items] == [(0, 1, 2)]
        assert evidence.items[0].score == 0


def test_steps_are_the_datas_indices_and_windows_positions(raw: RawMemory) -> None:
    evidence = raw.retrieve(raw.build(trajectory("a", "b", "key", first=100)), "key")
    assert [item.steps for item in evidence.items] == [(100, 101, 102)]


def test_ranking_sees_text_that_evidence_clips_away(raw: RawMemory, settings: Settings) -> None:
    texts = ["room"] * 9
    texts[7] = "x" * 550_000 + " zebra " + "y" * 550_000
    evidence = raw.retrieve(raw.build(trajectory(*texts)), "zebra")
    assert 7 in evidence.items[0].steps
    assert evidence.truncated
    assert len(evidence.items[0].text) <= 3 * (settings.evidence.max_chars_per_step + 2)


def test_hostile_text_is_shown_as_it_is(raw: RawMemory) -> None:
    hostile = "\x00 \ud800 \u202eשלום {0} %s"
    evidence = raw.retrieve(raw.build(trajectory("", hostile, "")), "שלום")
    assert hostile in evidence.items[0].text


def test_settings_of_reading_leave_the_memory_alone(settings: Settings, raw: RawMemory) -> None:
    windows = settings.structures.raw
    fewer = RawMemory(windows.model_copy(update={"top_k": 1}), settings.stores.bm25, 500)
    wider = RawMemory(windows.model_copy(update={"min_window": 5}), settings.stores.bm25, 8000)
    assert fewer.build_identity() == raw.build_identity() != wider.build_identity()
    assert fewer.retrieve_identity() != raw.retrieve_identity()
