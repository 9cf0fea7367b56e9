"""How often a challenger that is no better takes over by luck, and how long one that is better waits, under several rules.

Nights of growing data: each night adds held-out episodes, and the night's challenger is compared with the champion on all of
them. ``another``: each night another challenger, as when searches change; ``the same``: one and the same every night, so that
only the looks are many. Differences of a question: zero where both read the same, else noise, with a part that an episode's
questions share.

    python benchmarks/nights.py [--worlds 400] [--nights 60]
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.evaluation.contest import confidence_of
from mesa_pipeline.evaluation.statistics import Interval, clustered_interval, paired_bootstrap

CONFIDENCE, SAMPLES = 0.95, 1000
FIRST, PER_NIGHT, QUESTIONS = 8, 2, 12
CHANGED, NOISE, SHARED = 0.5, 0.3, 0.04


@dataclass(frozen=True)
class World:
    """The differences of one night's challenger over all held-out episodes, by episode."""

    differences: np.ndarray
    episodes: np.ndarray


@dataclass(frozen=True)
class Rule:
    """How a night decides."""

    name: str
    interval: Callable[[float, World], Interval]
    spends: bool
    growth: float = 0.0

    def promoted_at(self, worlds: Iterator[World]) -> int | None:
        """The first night on which the challenger takes over."""
        looks, compared_on = 0, 0
        for night, found in enumerate(worlds, 1):
            episodes = len(set(found.episodes))
            if episodes < compared_on * (1 + self.growth):
                continue
            looks, compared_on = looks + 1, episodes
            if self.interval(confidence_of(CONFIDENCE, looks) if self.spends else CONFIDENCE, found).low > 0:
                return night
        return None


def worlds(rng: np.random.Generator, count: int, gain: float, same: bool) -> Iterator[World]:
    kept = _differences(rng, FIRST + PER_NIGHT * count, gain)
    for night in range(count):
        now = FIRST + PER_NIGHT * night
        found = kept if same else _differences(rng, now, gain)
        yield World(found[: now * QUESTIONS], np.repeat(np.arange(now), QUESTIONS))


def _differences(rng: np.random.Generator, episodes: int, gain: float) -> np.ndarray:
    shared = np.repeat(rng.normal(0, SHARED, episodes), QUESTIONS)
    changed = rng.random(episodes * QUESTIONS) < CHANGED
    return np.where(changed, rng.normal(gain / CHANGED, NOISE, changed.size) + shared, 0.0)


def bootstrap(confidence: float, found: World) -> Interval:
    return paired_bootstrap(found.differences, found.episodes, SAMPLES, confidence, 0)


def student(confidence: float, found: World) -> Interval:
    return clustered_interval(found.differences, found.episodes, confidence)


RULES = (
    Rule("bootstrap, 95% each night", bootstrap, spends=False),
    Rule("Student, 95% each night", student, spends=False),
    Rule("bootstrap, spent", bootstrap, spends=True),
    Rule("Student, spent", student, spends=True),
    Rule("Student, spent, growth 0.25", student, spends=True, growth=0.25),
    Rule("Student, spent, growth 0.5", student, spends=True, growth=0.5),
)
CASES = (
    ("no gain, another", 0.0, False),
    ("no gain, the same", 0.0, True),
    ("+2 points, the same", 0.02, True),
    ("+3 points, the same", 0.03, True),
    ("+3 points, another", 0.03, False),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--nights", type=int, default=60)
    asked = parser.parse_args()
    for title, gain, same in CASES:
        print(f"\n{title}: promoted by night 1 / 7 / 20 / {asked.nights}")
        for rule in RULES:
            count = asked.worlds // 8 if rule.interval is bootstrap else asked.worlds
            seeds = (np.random.default_rng(seed) for seed in range(count))
            found = [rule.promoted_at(worlds(rng, asked.nights, gain, same)) for rng in seeds]
            shares = [np.mean([at is not None and at <= last for at in found]) for last in (1, 7, 20, asked.nights)]
            print(f"  {rule.name:28s}" + " / ".join(f"{100 * share:5.1f}%" for share in shares) + f"  ({count} worlds)")


if __name__ == "__main__":
    main()
