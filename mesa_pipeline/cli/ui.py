"""``mesa ui``: the asset graph in the browser."""

import click

from mesa_pipeline.cli.options import Options, pipeline_options


@click.command("ui")
@click.option("--port", type=int, default=3000, show_default=True, help="Port of the asset graph; a free one if it is taken.")
@click.option("--mlflow/--no-mlflow", default=True, show_default=True, help="Show the candidate policies in MLflow beside it.")
@click.option("--open", "open_browser", is_flag=True, help="Open the browser once it is there.")
@pipeline_options
def ui_command(options: Options, port: int, mlflow: bool, open_browser: bool) -> None:
    """Open the asset graph (Dagster) and the candidate policies (MLflow) on this machine, until Ctrl-C.

    Every asset can be materialised from there. --dataset and --data say where a dataset that needs files has them.
    """
    from mesa_pipeline.defs.ui import UiOptions, serve  # Dagster takes seconds to import; no other command needs it

    data_paths = {options.dataset: options.data} if options.data else {}
    serve(
        UiOptions(
            workspace=options.workspace,
            settings=options.settings,
            data_paths=data_paths,
            port=port,
            with_mlflow=mlflow,
            open_browser=open_browser,
        ),
        options.terminal.say,
    )
