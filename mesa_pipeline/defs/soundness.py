"""An asset does not work on what a blocking check found bad.

Dagster keeps the rest of the same run from it. But the partitions make several runs of the graph, and a person may start any
asset alone, so each asset looks at the last word of its inputs' checks itself.
"""

from collections.abc import Iterator
from functools import cache

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter  # there is no public way to ask for one partition's last result
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus


def failed_inputs(context: dg.AssetExecutionContext, dataset: str) -> list[str]:
    """One line for each blocking check that failed when it last looked at this partition's inputs."""
    graph = context.job_def.asset_layer.asset_graph
    failed: list[str] = []
    for parent in sorted(graph.get(context.asset_key).parent_keys):
        checks = [key for key in blocking_checks() if key.asset_key == parent]
        for partition in _partitions_of(graph.get(parent).partitions_def, context, dataset):
            found = context.instance.event_log_storage.get_latest_asset_check_execution_by_key(
                checks, PartitionKeyFilter(key=partition)
            )
            failed += [
                f"check {key.name} of {parent.to_user_string()}"
                for key, record in found.items()
                if record.status is AssetCheckExecutionRecordStatus.FAILED
            ]
    return sorted(failed)


def _partitions_of(
    inputs: dg.PartitionsDefinition[str] | None, context: dg.AssetExecutionContext, dataset: str
) -> Iterator[str]:
    """The partitions of an input that this step depends on."""
    keys = inputs.get_partition_keys() if inputs else ()
    own = context.partition_key
    if own in keys:
        yield str(own)
    elif dataset in keys:
        yield dataset


@cache
def blocking_checks() -> tuple[dg.AssetCheckKey, ...]:
    """Of all assets; a run knows of those of its own assets alone."""
    from mesa_pipeline.defs import checks  # which is about the assets, which look here

    defined = dg.load_asset_checks_from_modules([checks])
    return tuple(sorted(spec.key for definition in defined for spec in definition.check_specs if spec.blocking))
