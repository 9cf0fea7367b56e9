"""Executes a run for each partition, all at once, and prints which succeeded as the last line.

Definitions, instance and executor come from the environment, as in the processes that Dagster's daemon starts: a process for
each run, only that the definitions are loaded once for all of them.
"""

import json
import sys
from collections.abc import Sequence
from multiprocessing import get_context

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository

ALL_ASSETS = "__ASSET_JOB"


def execute(repository: ReconstructableRepository, assets: Sequence[str], partition: str) -> None:
    """Execute one run; the process ends with 0 where it succeeded."""
    keys = [dg.AssetKey(name) for name in assets]
    job = repository.get_reconstructable_job(ALL_ASSETS).get_subset(asset_selection=set(keys))
    tags = job.get_definition().get_tags_for_partition_key(partition, selected_asset_keys=keys)
    with dg.DagsterInstance.get() as instance:
        sys.exit(not dg.execute_job(job, instance, tags=tags, asset_selection=keys).success)


def main(partitions: Sequence[str], assets: Sequence[str]) -> None:
    repository = ReconstructableRepository.for_module("mesa_pipeline.definitions", "defs")
    repository.get_definition()
    fork = get_context("fork")
    runs = {name: fork.Process(target=execute, args=(repository, assets, name)) for name in partitions}
    for run in runs.values():
        run.start()
    for run in runs.values():
        run.join()
    sys.stdout.write(json.dumps({name: run.exitcode == 0 for name, run in runs.items()}) + "\n")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
