"""What the pipeline costs as work grows: seconds of each stage by steps per episode and by number of episodes.

Run ``python benchmarks/scaling.py`` (``--quick`` leaves out the largest sizes). Prints a Markdown table, and beside each figure
the factor over the size before it: 10 is linear.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.subsets import STRUCTURE_CODES, STRUCTURE_NAMES


@dataclass(frozen=True)
class Size:
    """A dataset to time: so many episodes of so many steps."""

    episodes: int
    steps: int

    def __str__(self) -> str:
        return f"{self.episodes:,} x {self.steps:,}"


QUESTIONS = 2
BY_STEPS = [Size(1, 10), Size(1, 100), Size(1, 1_000), Size(1, 10_000)]
BY_EPISODES = [Size(10, 10), Size(100, 10), Size(1_000, 10)]


def measure(size: Size, structures: Sequence[str]) -> dict[str, float]:
    """Seconds by stage for one size, in a fresh workspace."""
    overrides = [
        f"datasets.synthetic.episodes={size.episodes}",
        f"datasets.synthetic.steps={size.steps}",
        f"datasets.synthetic.questions={QUESTIONS}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        context = StageContext(Layout(Path(folder), "synthetic"), load_settings(overrides=overrides))
        seconds = {"ingest": ingest(context).seconds}
        for code in structures:
            seconds[f"build {STRUCTURE_NAMES[code]}"] = build(context, code).seconds
        for code in structures:
            seconds[f"retrieve {STRUCTURE_NAMES[code]}"] = retrieve(context, code).seconds
        if set(structures) == set(STRUCTURE_CODES):
            seconds["sweep"] = sweep(context).seconds
    print(f"{size}: {seconds}", file=sys.stderr)
    return seconds


def table(sizes: Sequence[Size], measured: Sequence[dict[str, float]]) -> Iterator[str]:
    """Rows of a Markdown table: one stage a row, one size a column."""
    yield "| stage | " + " | ".join(str(size) for size in sizes) + " |"
    yield "| --- " * (len(sizes) + 1) + "|"
    for stage in measured[0]:
        figures = [found.get(stage, float("nan")) for found in measured]
        factors = ["", *(f" (x{after / max(before, 1e-3):.1f})" for before, after in pairwise(figures))]
        yield f"| {stage} | " + " | ".join(f"{s:.2f} s{f}" for s, f in zip(figures, factors, strict=True)) + " |"


def main() -> None:
    """Time both directions of growth and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest size of each direction")
    parser.add_argument("--structures", default="".join(STRUCTURE_CODES), help="only these, such as STGR (then no sweep)")
    arguments = parser.parse_args()
    for title, sizes in (("Steps per episode", BY_STEPS), ("Episodes", BY_EPISODES)):
        chosen = sizes[:-1] if arguments.quick else sizes
        started = time.perf_counter()
        measured = [measure(size, arguments.structures) for size in chosen]
        print(f"\n## {title} (episodes x mean steps, {QUESTIONS} questions each)\n")
        print("\n".join(table(chosen, measured)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"\n{time.perf_counter() - started:.0f} s in all; peak memory of the main process {peak:,.0f} MB")


if __name__ == "__main__":
    main()
