"""How often a challenger that is no better takes over by luck, and how long one that is better waits, under several rules.

Nights of growing data: each night adds held-out episodes, and the night's challenger is compared with the champion on all of
them. ``fresh``: each night another challenger that is not better; ``same``: one and the same every night, so that only the
looks are many. Differences of a question: zero where both read the same, else noise, with a part that an episode's questions share.

    python benchmarks/nights.py [--worlds 400] [--nights 40]
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mesa_pipeline.evaluation.contest import confidence_of
from mesa_pipeline.evaluation.statistics import Interval, clustered_interval, paired_bootstrap

CONFIDENCE, SAMPLES = 0.95, 1000
FIRST, PER_NIGHT, QUESTIONS = 8, 1, 12
CHANGED, NOISE, SHARED = 0.5, 0.3, 0.04


@dataclass(frozen=True)
class World:
    """The differences of one night's challenger over all held-out episodes, by episode."""

    differences: np.ndarray
    episodes: np.ndarray


def nights(rng: np.random.Generator, count: int, gain: float, same: bool) -> Iterator[World]:
    episodes = FIRST + PER_NIGHT * count
    kept = _differences(rng, episodes, gain)
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


RULES: dict[str, Callable[[World, int], bool]] = {
    "bootstrap, every night 95%": lambda found, _: bootstrap(CONFIDENCE, found).low > 0,
    "Student, every night 95%": lambda found, _: student(CONFIDENCE, found).low > 0,
    "bootstrap, spent": lambda found, number: bootstrap(confidence_of(CONFIDENCE, number), found).low > 0,
    "Student, spent (the rule)": lambda found, number: student(confidence_of(CONFIDENCE, number), found).low > 0,
}


def promoted_at(rule: Callable[[World, int], bool], worlds: Iterator[World]) -> int | None:
    """The first night on which the challenger takes over."""
    return next((night for night, found in enumerate(worlds, 1) if rule(found, night)), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--nights", type=int, default=40)
    asked = parser.parse_args()
    for title, gain, same in [("no gain, fresh", 0.0, False), ("no gain, same", 0.0, True), ("+2 points, same", 0.02, True)]:
        print(f"\n{title}: promoted by night 1 / 7 / {asked.nights}, median night")
        for name, rule in RULES.items():
            count = asked.worlds // 4 if name.startswith("bootstrap") else asked.worlds
            found = [promoted_at(rule, nights(np.random.default_rng(seed), asked.nights, gain, same)) for seed in range(count)]
            shares = [np.mean([at is not None and at <= last for at in found]) for last in (1, 7, asked.nights)]
            median = np.median([at or asked.nights + 1 for at in found])
            print(
                f"  {name:28s}" + " / ".join(f"{100 * share:5.1f}%" for share in shares) + f"   {median:.0f}  ({count} worlds)"
            )


if __name__ == "__main__":
    main()
