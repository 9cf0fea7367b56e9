"""Ten data sets built by Celery workers of this machine: one worker, two, and two of which one is killed in the middle.

    python -m benchmarks.celery_two_workers [--partitions 10] [--episodes 3] [--steps 40]

A real Redis (redis-server must be installed), PostgreSQL and Celery; all five structures, with the default embedder. A worker
is a process with one core's worth of threads, as if it were a machine.
"""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.subsets import STRUCTURE_NAMES
from tests.infra.celery_cluster import Cluster, cluster, own_data, settings_of, wait_until

ASSETS = ("raw_trajectories", *(f"{name}_memory" for name in STRUCTURE_NAMES.values()))
VISIBILITY_SECONDS = 60
LIMIT_SECONDS = 1500.0


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    partitions: int
    episodes: int
    steps: int


@dataclass(frozen=True)
class Scenario:
    """Which workers start, and what happens to them while they work."""

    name: str
    workers: tuple[str, ...]
    meanwhile: Callable[[Cluster, Sequence[str]], None] = lambda workers, partitions: None


def kill_first_while_it_builds(workers: Cluster, partitions: Sequence[str]) -> None:
    built = [Layout(workers.workspace, name).timings(f"build-{code}") for name in partitions for code in STRUCTURE_NAMES]
    wait_until(lambda: 2 * sum(path.exists() for path in built) > len(built), LIMIT_SECONDS, "half of it is built")
    wait_until(
        lambda: any(workers.holds_a_part("first", name) for name in partitions), LIMIT_SECONDS, "the first worker builds"
    )
    workers.kill_worker("first")


SCENARIOS = (
    Scenario("one worker", ("first",)),
    Scenario("two workers", ("first", "second")),
    Scenario("two, one killed half-way", ("first", "second"), kill_first_while_it_builds),
)


def measure(folder: Path, scenario: Scenario, size: Size) -> str:
    """Run one scenario; returns a row of the table."""
    sources = {
        f"traces.part{n}": own_data(folder / "data", f"traces.part{n}", size.episodes, size.steps)
        for n in range(size.partitions)
    }
    visible = {"MESA_CELERY_VISIBILITY_SECONDS": str(VISIBILITY_SECONDS)}
    with cluster(folder, {**settings_of(sources), **visible}) as workers:
        for name in scenario.workers:
            workers.start_worker(name)
        wait_until(lambda: all("ready." in workers.log(name) for name in scenario.workers), 300, "the workers are ready")
        started = time.perf_counter()
        coordinator = workers.materialise(list(sources), ASSETS)
        scenario.meanwhile(workers, list(sources))
        outcome = workers.outcome(coordinator, LIMIT_SECONDS)
        seconds = time.perf_counter() - started
    made = Counter(memories(workers.workspace, sources))
    wanted = size.partitions * size.episodes * len(STRUCTURE_NAMES)
    twice = sum(times > 1 for times in made.values())
    return (
        f"| {scenario.name} | {sum(outcome.values())} of {len(outcome)} | {len(made)} of {wanted} | {twice} | {seconds:.0f} s |"
    )


def memories(workspace: Path, partitions: Sequence[str]) -> list[tuple[str, str, str]]:
    """Data set, structure and episode of each memory, as often as it was made."""
    return [
        (name, code, json.loads(line)["key"])
        for name in partitions
        for code in STRUCTURE_NAMES
        for line in Layout(workspace, name).timings(f"build-{code}").read_text().splitlines()
    ]


@click.command()
@click.option("--partitions", default=10, show_default=True)
@click.option("--episodes", default=3, show_default=True, help="In each partition.")
@click.option("--steps", default=40, show_default=True, help="In each episode.")
def main(partitions: int, episodes: int, steps: int) -> None:
    """Print a table with a row for each scenario."""
    click.echo("| workers | runs that succeeded | memories | made twice | wall time |\n| --- | --- | --- | --- | --- |")
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            click.echo(measure(Path(folder), scenario, Size(partitions, episodes, steps)))


if __name__ == "__main__":
    main()
