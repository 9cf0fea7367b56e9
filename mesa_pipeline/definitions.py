"""Dagster's entry point: ``dagster-webserver -m mesa_pipeline.definitions``, or ``mesa ui``.

Run as a module, it only checks that everything loads.
"""

from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    """Every asset, check, resource and automation under ``defs/``."""
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)


if __name__ == "__main__":
    dg.Definitions.validate_loadable(defs())
