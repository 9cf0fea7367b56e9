"""``mesa ui``: the asset graph in the browser."""

import click

from mesa_pipeline.cli.options import Options, pipeline_options
