"""Train, validation and test splits by episode (paper, Section 4: ratio 2:2:6, random, covering the whole dataset)."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mesa_pipeline.errors import DataError

PARTS = ("train", "val", "test")


@dataclass(frozen=True, slots=True)
class EpisodeInfo:
    """What a split needs to know of an episode; ``qa_types`` are those of its questions."""

    id: str
    domain: str
    task_type: str
    qa_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """Episode ids of the three parts, each in ascending order, and what could not be covered."""

    seed: int
    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class Label(NamedTuple):
    """Something every part should hold an episode of."""

    kind: str
    name: str


class Swap(NamedTuple):
    """Two episodes of different parts that change places."""

    first: EpisodeInfo
    second: EpisodeInfo


def split_episodes(episodes: Sequence[EpisodeInfo], seed: int, ratio: tuple[int, int, int]) -> Split:
    """Split episodes at random, stratified by task type.

    Which episode goes where depends on the seed and the episodes alone, not on their order. A task type with at least three
    episodes is in every part; so are, where exchanging episodes allows it, domains and question types. What is missing from
    a part is named in ``warnings``.

    Args:
        episodes: The episodes; at least three.
        seed: Another seed gives another split.
        ratio: Shares of train, validation and test.

    Raises:
        DataError: There are fewer than three episodes, or an id occurs twice.
    """
    _check(episodes)
    part_of = _drawn_parts(episodes, seed, ratio)
    coverage = _Coverage(part_of)
    while (swap := coverage.best_swap()) is not None:
        coverage.apply(swap)
    return _split(seed, part_of, coverage)


def extend_split(assigned: Mapping[str, str], episodes: Sequence[EpisodeInfo], seed: int, ratio: tuple[int, int, int]) -> Split:
    """Split episodes of which some have their part already: those stay, so that no held-out one is ever trained on.

    Each new episode goes to the part that lacks most against the ratio, in all and within its task type together (minimisation
    after Pocock and Simon, 1975). Nobody changes places to fill a gap; what is missing from a part is named in ``warnings``.
    Where none of the episodes has a part, or one part would stay empty, all are drawn as by ``split_episodes``.

    Args:
        assigned: Part of each episode split before, by id; ids that are gone do no harm.
        episodes: The episodes as they are now; at least three.
        seed: Decides the order in which new episodes take their places.
        ratio: Shares of train, validation and test.

    Raises:
        DataError: There are fewer than three episodes, or an id occurs twice.
    """
    _check(episodes)
    part_of = {episode: PARTS.index(assigned[episode.id]) for episode in episodes if episode.id in assigned}
    new = sorted((episode for episode in episodes if episode not in part_of), key=lambda episode: _draw(seed, episode.id))
    for episode in new if part_of else ():
        part_of[episode] = _most_lacking(part_of, episode, ratio)
    if len(set(part_of.values())) < len(PARTS):
        return split_episodes(episodes, seed, ratio)
    return _split(seed, part_of, _Coverage(part_of))


def _most_lacking(part_of: Mapping[EpisodeInfo, int], episode: EpisodeInfo, ratio: tuple[int, int, int]) -> int:
    alike = [part for other, part in part_of.items() if (other.domain, other.task_type) == (episode.domain, episode.task_type)]

    def lack(part: int) -> float:
        groups = (list(part_of.values()), alike)
        return round(sum(_share(len(group) + 1, ratio, part) - group.count(part) for group in groups), 9)

    return max(range(len(PARTS)), key=lambda part: (lack(part), part))


def _split(seed: int, part_of: Mapping[EpisodeInfo, int], coverage: "_Coverage") -> Split:
    train, val, test = (tuple(sorted(e.id for e, part in part_of.items() if part == k)) for k in range(len(PARTS)))
    return Split(seed, train, val, test, tuple(coverage.warnings()))


def _drawn_parts(episodes: Sequence[EpisodeInfo], seed: int, ratio: tuple[int, int, int]) -> dict[EpisodeInfo, int]:
    strata: dict[tuple[str, str], list[EpisodeInfo]] = {}
    for episode in sorted(episodes, key=lambda episode: _draw(seed, episode.id)):
        strata.setdefault((episode.domain, episode.task_type), []).append(episode)
    members = list(strata.values())  # in the order drawn, so that the seed also decides which strata the remainders come from
    part_of: dict[EpisodeInfo, int] = {}
    for stratum, sizes in zip(members, _allot_strata([len(stratum) for stratum in members], ratio), strict=True):
        parts = (part for part, size in enumerate(sizes) for _ in range(size))
        part_of.update(zip(stratum, parts, strict=True))
    return part_of


def allot(total: int, ratio: tuple[int, int, int]) -> list[int]:
    """Share ``total`` by ratio with the largest-remainder method; no part is empty when the total is three or more."""
    sizes = _least_sizes(total, ratio)
    while sum(sizes) < total:
        sizes[max(range(len(PARTS)), key=lambda part: (_share(total, ratio, part) - sizes[part], part))] += 1
    return sizes


def _share(total: int, ratio: tuple[int, int, int], part: int) -> float:
    return total * ratio[part] / sum(ratio)


def _least_sizes(total: int, ratio: tuple[int, int, int]) -> list[int]:
    """Each part's share rounded down, but at least one where the total allows it."""
    least = 1 if total >= len(PARTS) else 0
    sizes = [max(int(_share(total, ratio, part)), least) for part in range(len(PARTS))]
    while sum(sizes) > total:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _allot_strata(totals: Sequence[int], ratio: tuple[int, int, int]) -> list[list[int]]:
    """Sizes of each stratum's three parts.

    All get their shares rounded down. Of the episodes that remain, the next always goes to the part whose sum lacks most, from
    the stratum whose own proportions that bends least.
    """
    sizes = [_least_sizes(total, ratio) for total in totals]
    spare = [total - sum(row) for total, row in zip(totals, sizes, strict=True)]
    lacking = [wanted - sum(row[part] for row in sizes) for part, wanted in enumerate(allot(sum(totals), ratio))]

    def bend(stratum: int, part: int) -> float:
        missing = [_share(totals[stratum], ratio, k) - sizes[stratum][k] for k in range(len(PARTS))]
        return round((max(missing) - missing[part]) / totals[stratum], 9)

    while any(spare):
        part = max(range(len(PARTS)), key=lambda part: (lacking[part], part))
        candidates = [stratum for stratum, left in enumerate(spare) if left]
        stratum = min(candidates, key=lambda stratum: (bend(stratum, part), totals[stratum]))
        sizes[stratum][part] += 1
        spare[stratum] -= 1
        lacking[part] -= 1
    return sizes


class _Coverage:
    """Counts which labels each part holds, and finds the exchanges of two episodes that fill gaps."""

    def __init__(self, part_of: dict[EpisodeInfo, int]) -> None:
        self._part_of = part_of
        self._totals = Counter(label for episode in part_of for label in _labels(episode))
        self._counts = [Counter[Label]() for _ in PARTS]
        for episode, part in part_of.items():
            self._counts[part].update(_labels(episode))

    def best_swap(self) -> Swap | None:
        """An exchange after which fewer labels are missing, within one stratum if possible; ``None`` when there is none."""
        for part, label in self._gaps():
            holders = [episode for episode, home in self._part_of.items() if home != part and label in _labels(episode)]
            leavers = [episode for episode, home in self._part_of.items() if home == part]
            for within_stratum in (True, False):
                for holder in holders:
                    for leaver in leavers:
                        same = (holder.domain, holder.task_type) == (leaver.domain, leaver.task_type)
                        if same == within_stratum and self._gain(leaver, holder) > 0:
                            return Swap(leaver, holder)
        return None

    def apply(self, swap: Swap) -> None:
        """Let two episodes change places."""
        for episode, other in (swap, (swap.second, swap.first)):
            self._counts[self._part_of[episode]].subtract(_labels(episode))
            self._counts[self._part_of[episode]].update(_labels(other))
        self._part_of[swap.first], self._part_of[swap.second] = self._part_of[swap.second], self._part_of[swap.first]

    def warnings(self) -> Iterator[str]:
        """One line for each label that some part lacks."""
        for label in sorted(self._totals):
            missing = [name for name, counts in zip(PARTS, self._counts, strict=True) if not counts[label]]
            if missing:
                number = self._totals[label]
                yield (
                    f"{label.kind} {label.name!r} is missing from {' and '.join(missing)}: {number} "
                    f"{'episode has' if number == 1 else 'episodes have'} it"
                )

    def _required(self, label: Label) -> bool:
        return self._totals[label] >= len(PARTS)

    def _gaps(self) -> Iterator[tuple[int, Label]]:
        for part, counts in enumerate(self._counts):
            for label in sorted(self._totals):
                if self._required(label) and not counts[label]:
                    yield part, label

    def _gain(self, first: EpisodeInfo, second: EpisodeInfo) -> int:
        gain = 0
        for leaver, comer in ((first, second), (second, first)):
            counts = self._counts[self._part_of[leaver]]
            lost, won = _labels(leaver) - _labels(comer), _labels(comer) - _labels(leaver)
            gain += sum(1 for label in won if self._required(label) and counts[label] == 0)
            gain -= sum(1 for label in lost if self._required(label) and counts[label] == 1)
        return gain


def _labels(episode: EpisodeInfo) -> frozenset[Label]:
    return frozenset(
        [Label("domain", episode.domain), Label("task type", episode.task_type)]
        + [Label("question type", name) for name in episode.qa_types]
    )


def _draw(seed: int, episode_id: str) -> bytes:
    return hashlib.sha256(f"{seed}/{episode_id}".encode("utf-8", "surrogatepass")).digest()


def _check(episodes: Sequence[EpisodeInfo]) -> None:
    if len(episodes) < len(PARTS):
        raise DataError(
            f"{len(episodes)} episodes cannot be split into train, validation and test; give at least {len(PARTS)}, "
            "or use `mesa build` and `mesa ask`, which need no split"
        )
    repeated = [name for name, number in Counter(episode.id for episode in episodes).items() if number > 1]
    if repeated:
        raise DataError(f"episode id {min(repeated)!r} occurs twice; give every episode its own id")
