import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import ama_bench, locomo
from mesa_pipeline.datasets.splits import EpisodeInfo, Split, allot, extend_split, split_episodes
from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode

RATIO = (2, 2, 6)
PARTS = ("train", "val", "test")


def make_episodes(**strata: int) -> list[EpisodeInfo]:
    """So many episodes of each task type; the part of its name before ``_`` is the domain."""
    return [
        EpisodeInfo(f"{task_type}-{number}", task_type.split("_")[0], task_type, ("recall",))
        for task_type, total in strata.items()
        for number in range(total)
    ]


def to_infos(episodes: Sequence[Episode]) -> list[EpisodeInfo]:
    return [
        EpisodeInfo(e.id, e.domain, e.task_type, tuple(sorted({q.qa_type for q in e.questions if q.qa_type}))) for e in episodes
    ]


def sizes(split: Split) -> tuple[int, int, int]:
    return len(split.train), len(split.val), len(split.test)


def sizes_of(split: Split, prefix: str) -> tuple[int, ...]:
    return tuple(sum(name.startswith(prefix) for name in getattr(split, part)) for part in PARTS)


@pytest.mark.parametrize(
    ("total", "expected"),
    [(3, [1, 1, 1]), (4, [1, 1, 2]), (5, [1, 1, 3]), (6, [1, 1, 4]), (10, [2, 2, 6]), (86, [17, 17, 52]), (2, [0, 1, 1])],
)
def test_a_total_is_shared_by_largest_remainder(total: int, expected: list[int]) -> None:
    assert allot(total, RATIO) == expected


@pytest.mark.parametrize("total", [3, 4, 7, 100])
def test_no_part_is_empty_even_for_a_steep_ratio(total: int) -> None:
    shares = allot(total, (1, 1, 98))
    assert sum(shares) == total
    assert min(shares) >= 1


def test_a_seed_decides_and_the_order_of_episodes_does_not() -> None:
    episodes = make_episodes(a=9, b=12)
    split = split_episodes(episodes, 3, RATIO)
    shuffled = random.Random(0).sample(episodes, len(episodes))
    assert split_episodes(shuffled, 3, RATIO) == split
    assert len({split_episodes(episodes, seed, RATIO).test for seed in range(5)}) == 5
    assert split.seed == 3


def test_parts_share_nothing_and_cover_everything() -> None:
    episodes = make_episodes(a=9, b=12, c=1)
    split = split_episodes(episodes, 0, RATIO)
    assert sorted(split.train + split.val + split.test) == sorted(episode.id for episode in episodes)
    assert list(split.test) == sorted(split.test)


def test_the_same_split_under_any_hash_seed() -> None:
    program = (
        "from mesa_pipeline.datasets.splits import *\n"
        "e = [EpisodeInfo(f'{k}', f'd{k % 3}', f't{k % 4}', tuple('ABCD'[: k % 4])) for k in range(23)]\n"
        "import sys; sys.stdout.write(repr(split_episodes(e, 1, (2, 2, 6))))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("seed", range(5))
def test_each_task_type_is_in_each_part(seed: int) -> None:
    split = split_episodes(make_episodes(a_x=3, a_y=3, b_z=20, c_w=6), seed, RATIO)
    assert sizes_of(split, "a_x") == (1, 1, 1)
    assert sizes_of(split, "a_y") == (1, 1, 1)
    assert sizes_of(split, "b_z") == (4, 4, 12)
    assert sizes_of(split, "c_w") == (1, 1, 4)
    assert split.warnings == ()


def test_small_strata_do_not_add_up_to_a_wrong_total() -> None:
    split = split_episodes(make_episodes(**{f"t{k}": 4 for k in range(10)}), 0, RATIO)
    assert sizes(split) == (10, 10, 20)
    split = split_episodes(make_episodes(**{f"t{k}": 7 for k in range(10)}), 0, RATIO)
    assert sizes(split) == (14, 14, 42)


def test_episodes_left_over_bend_large_task_types_before_small_ones() -> None:
    totals = {"a_1": 6, "a_2": 6, "a_3": 6, "b": 51, "c": 31, "d": 36, "e_1": 10, "e_2": 5}
    split = split_episodes(make_episodes(**totals), 0, RATIO)
    assert sizes(split) == (30, 30, 91)
    assert [sizes_of(split, name) for name in ("a_1", "a_2", "a_3", "e_1", "e_2")] == [
        *[(1, 1, 4)] * 3,
        (2, 2, 6),
        (1, 1, 3),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_domain_of_single_episodes_is_spread_by_exchange(seed: int) -> None:
    split = split_episodes(make_episodes(a_1=1, a_2=1, a_3=1, b_1=12), seed, RATIO)
    assert sizes_of(split, "a_") == (1, 1, 1)
    assert sizes(split) == (3, 3, 9)


@pytest.mark.parametrize("seed", range(10))
def test_question_types_are_repaired_by_exchange(seed: int) -> None:
    episodes = [EpisodeInfo(f"{k}", "d", "t", ("recall", "rare") if k < 3 else ("recall",)) for k in range(20)]
    split = split_episodes(episodes, seed, RATIO)
    assert sizes(split) == (4, 4, 12)
    for part in (split.train, split.val, split.test):
        assert len(set(part) & {"0", "1", "2"}) == 1
    assert split.warnings == ()


def test_what_is_too_rare_for_three_parts_is_told() -> None:
    split = split_episodes(make_episodes(a=1, b=2, c=10), 0, RATIO)
    assert len(split.warnings) == 4
    assert any("task type 'a' is missing from" in line and "1 episode has it" in line for line in split.warnings)
    assert any("domain 'b' is missing from" in line and "2 episodes have it" in line for line in split.warnings)


def test_three_episodes_of_three_kinds_still_give_three_parts() -> None:
    assert sizes(split_episodes(make_episodes(a=1, b=1, c=1), 0, RATIO)) == (1, 1, 1)


@pytest.mark.parametrize("total", [0, 1, 2])
def test_fewer_than_three_episodes_cannot_be_split(total: int) -> None:
    with pytest.raises(DataError, match=f"{total} episode.*at least 3"):
        split_episodes(make_episodes(a=total), 0, RATIO)


def test_an_id_may_not_occur_twice() -> None:
    with pytest.raises(DataError, match="'a-0' occurs twice"):
        split_episodes(make_episodes(a=4) + make_episodes(a=1), 0, RATIO)


def test_odd_ids_are_only_ids() -> None:
    names = ["../../x", "\ud83d", "\x00", ""]
    split = split_episodes([EpisodeInfo(name, "d", "t") for name in names], 0, RATIO)
    assert sorted(split.train + split.val + split.test) == sorted(names)


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sets(st.sampled_from("ABCD"))), min_size=3),
    seed=st.integers(0, 9),
    ratio=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
)
def test_any_episodes_split_cleanly(labels: list[tuple[str, str, set[str]]], seed: int, ratio: tuple[int, int, int]) -> None:
    episodes = [EpisodeInfo(f"{k}", d, f"{d}{t}", tuple(sorted(q))) for k, (d, t, q) in enumerate(labels)]
    split = split_episodes(episodes, seed, ratio)
    parts = [set(split.train), set(split.val), set(split.test)]
    assert all(parts)
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(episodes)
    for task_type, total in Counter(episode.task_type for episode in episodes).items():
        covered = all(any(e.task_type == task_type and e.id in part for e in episodes) for part in parts)
        assert covered or total < 3 or any(f"'{task_type}'" in line for line in split.warnings)


def test_thousands_of_episodes_take_no_time() -> None:
    episodes = [EpisodeInfo(f"{k}", f"d{k % 6}", f"t{k % 12}", ("A", "B") if k % 2000 else ("Z",)) for k in range(10_000)]
    assert sizes(split_episodes(episodes, 0, RATIO)) == (2000, 2000, 6000)


@pytest.mark.parametrize("seed", range(5))
def test_the_development_part_of_ama_bench(dev_data: Path, settings: Settings, seed: int) -> None:
    loaded = ama_bench.load(dev_data / "ama_bench" / "open_end_qa_set.jsonl", settings.datasets, False)
    episodes = to_infos(loaded.episodes)
    split = split_episodes(episodes, seed, settings.splits.ratio)
    assert sizes(split) == (18, 18, 50)
    assert split.warnings == ()
    for part in (split.train, split.val, split.test):
        held = [episode for episode in episodes if episode.id in part]
        assert len({episode.domain for episode in held}) == 6
        assert len({episode.task_type for episode in held}) == 12
        assert len({name for episode in held for name in episode.qa_types}) == 4


@pytest.mark.parametrize("seed", range(5))
def test_the_development_part_of_locomo(dev_data: Path, settings: Settings, seed: int) -> None:
    loaded = locomo.load(dev_data / "locomo" / "locomo5.json", settings.datasets, False)
    split = split_episodes(to_infos(loaded.episodes), seed, settings.splits.ratio)
    assert sizes(split) == (1, 1, 3)
    assert split.warnings == ()
    assert "conv-30" in split.test, "the one conversation without open-domain questions"


def parts_of(split: Split) -> dict[str, str]:
    return {id: part for part in PARTS for id in getattr(split, part)}


@given(st.integers(0, 12), st.integers(0, 12), st.integers(3, 10), st.integers(0, 5), st.integers(0, 4))
@hypothesis_settings(max_examples=60, deadline=None)
def test_a_split_that_grows_moves_nobody(games: int, webs: int, first: int, gone: int, seed: int):
    episodes = make_episodes(Game_a=first, Game_b=games, WEB_c=webs)
    before = parts_of(split_episodes(episodes[:first], seed, RATIO))
    staying = episodes[gone if len(episodes) - gone >= 3 else 0 :]
    grown = extend_split(before, staying, seed, RATIO)
    after = parts_of(grown)
    assert set(after) == {episode.id for episode in staying}
    if {before[id] for id in after.keys() & before.keys()} == set(PARTS):
        assert all(after[id] == before[id] for id in after.keys() & before.keys())


def test_new_episodes_keep_to_the_ratio_in_all_and_within_their_task_types():
    episodes = make_episodes(Game_a=30, WEB_b=30, TEXT_c=2)
    assigned = parts_of(split_episodes(episodes[:10], 0, RATIO))
    for count in range(11, len(episodes) + 1):
        assigned = parts_of(extend_split(assigned, episodes[:count], 0, RATIO))
    assert [list(assigned.values()).count(part) for part in PARTS] == pytest.approx([12.4, 12.4, 37.2], abs=1.0)
    webs = [part for id, part in assigned.items() if id.startswith("WEB")]
    assert [webs.count(part) for part in PARTS] == pytest.approx([6, 6, 18], abs=1.0)


def test_a_split_that_grows_depends_on_no_order():
    episodes = make_episodes(Game_a=9, WEB_b=6)
    assigned = parts_of(split_episodes(episodes[:6], 1, RATIO))
    assert extend_split(assigned, episodes, 1, RATIO) == extend_split(assigned, episodes[::-1], 1, RATIO)


def test_a_split_of_which_nothing_or_a_whole_part_is_left_is_drawn_anew():
    episodes = make_episodes(Game_a=9)
    assert extend_split({}, episodes, 2, RATIO) == split_episodes(episodes, 2, RATIO)
    assert extend_split(dict.fromkeys((e.id for e in episodes), "test"), episodes, 2, RATIO) == split_episodes(
        episodes, 2, RATIO
    )
