"""How the assets are partitioned: by dataset, and by dataset and split seed."""

from functools import partial

import dagster as dg

from mesa_pipeline.datasets import dataset_names
from mesa_pipeline.defs.resources import DATASET_DIMENSION, SEED_DIMENSION, read_settings
from mesa_pipeline.defs.schedules import NIGHTLY

SETTINGS = read_settings()
BY_DATASET = dg.StaticPartitionsDefinition(dataset_names(SETTINGS.datasets))
BY_DATASET_AND_SEED = dg.MultiPartitionsDefinition(
    {
        DATASET_DIMENSION: BY_DATASET,
        SEED_DIMENSION: dg.StaticPartitionsDefinition([str(seed) for seed in SETTINGS.splits.seeds]),
    }
)

asset_by_dataset = partial(dg.asset, partitions_def=BY_DATASET, automation_condition=NIGHTLY)
asset_by_seed = partial(dg.asset, partitions_def=BY_DATASET_AND_SEED, automation_condition=NIGHTLY)
