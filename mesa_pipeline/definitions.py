"""Dagster's entry point: ``dagster-webserver -m mesa_pipeline.definitions``, or ``mesa ui``.

Run as a module, it only checks that everything loads.
"""

from pathlib import Path

import dagster as dg

from mesa_pipeline.defs.schedules import NIGHTLY


@dg.definitions
def defs() -> dg.Definitions:
    """Every asset, check, resource and automation under ``defs/``; every asset is part of the nightly re-evaluation."""
    loaded = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return loaded.map_asset_specs(func=lambda spec: spec.replace_attributes(automation_condition=NIGHTLY))


if __name__ == "__main__":
    dg.Definitions.validate_loadable(defs())
