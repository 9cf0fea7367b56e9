"""Executes a run for each partition, all at once, and prints which succeeded as the last line.

Definitions, instance and executor come from the environment, as in the processes that Dagster's daemon starts: a process for
each run, only that the definitions are loaded once for all of them.
"""

import json
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing import get_context

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository

ALL_ASSETS = "__ASSET_JOB"


def run_of(repository: ReconstructableRepository, assets: Sequence[str], partition: str) -> bool:
    keys = [dg.AssetKey(name) for name in assets]
    job = repository.get_reconstructable_job(ALL_ASSETS).get_subset(asset_selection=set(keys))
    tags = job.get_definition().get_tags_for_partition_key(partition, selected_asset_keys=keys)
    with dg.DagsterInstance.get() as instance:
        return dg.execute_job(job, instance, tags=tags, asset_selection=keys).success


def main(partitions: Sequence[str], assets: Sequence[str]) -> None:
    repository = ReconstructableRepository.for_module("mesa_pipeline.definitions", "defs")
    repository.get_definition()
    with get_context("fork").Pool(len(partitions)) as processes:
        succeeded = processes.map(partial(run_of, repository, assets), partitions, chunksize=1)
    sys.stdout.write(json.dumps(dict(zip(partitions, succeeded, strict=True))) + "\n")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
