"""The ``mesa`` command. Settings and environment are read here (and in ``defs/resources``), nowhere below."""

import io
import logging
import multiprocessing
import os
import sys
from typing import NoReturn

import click

from mesa_pipeline import __version__
from mesa_pipeline.cli import ask, baselines, champion, doctor, ledger, pipeline, services, track, ui
from mesa_pipeline.cli.groups import CommandsInOrder
from mesa_pipeline.cli.terminal import Terminal
from mesa_pipeline.errors import MesaError, WorkFailed

EXIT_FAILED_ITEMS = 1
EXIT_CANNOT_WORK = 2
EXIT_INTERRUPTED = 130


@click.group(cls=CommandsInOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="mesa")
@click.option("-v", "--verbose", is_flag=True, help="Log what is being done to standard error.")
def mesa(verbose: bool) -> None:
    """Read an agent's long history through the right memories for each question.

    MESA stores every trajectory in five structures (summary, temporal store, graph, vectors, raw windows), measures what each
    of their 31 combinations is worth for answering questions, learns which to read for which question, and proves it on
    held-out episodes.

    Start with `mesa run`: it needs no data, no server and no key. Then open the report it names.
    """
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s")


for command in (
    *pipeline.COMMANDS,
    champion.nightly_command,
    champion.champion_group,
    baselines.baselines_group,
    ask.ask_command,
    track.track_command,
    ledger.ledger_command,
    doctor.doctor_command,
    services.up_command,
    services.status_command,
    services.down_command,
    ui.ui_command,
):
    mesa.add_command(command)


def main() -> None:
    """Entry point: a problem with a remedy is one message and exit code 2; failed items are exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # logs hold what the terminal's encoding, or any, cannot say
            stream.reconfigure(errors="backslashreplace")
    try:
        mesa.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; run the same command again to continue", err=True)
        _leave_at_once()
    except WorkFailed as error:
        Terminal().error(f"mesa: {error}")
        sys.exit(EXIT_FAILED_ITEMS)
    except (MesaError, OSError) as error:
        Terminal().error(f"mesa: {error}")
        sys.exit(EXIT_CANNOT_WORK)


def _leave_at_once() -> NoReturn:
    """End without waiting for what threads and workers have in hand, such as requests that are paid for; a rerun asks again."""
    for worker in multiprocessing.active_children():
        worker.kill()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(EXIT_INTERRUPTED)
