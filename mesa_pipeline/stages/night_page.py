"""The page on a dataset's last night, for people: champion/night.html, and the same in Markdown and as figures."""

from mesa_pipeline.artifacts import Layout, fingerprint, read_json, write_sealed_json, write_text
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.nights import ChampionHistory
from mesa_pipeline.stages.reigns import Throne

PAGE, MARKDOWN, METRICS = "night.html", "night.md", "night.json"
PAGE_VERSION = 2
"""Raised when the page says something else of the same nights."""


def read_history(layout: Layout) -> ChampionHistory:
    """Every night and handover of a dataset; empty before the first.

    Raises:
        ArtifactError: The history was changed or is damaged.
    """
    throne = Throne(layout)
    return ChampionHistory(throne.nights(), throne.handovers())


def write_night_page(layout: Layout) -> None:
    """Write what the history says where the page does not say it; the figures are written last and vouch for the rest."""
    history = read_history(layout)
    if not history.nights:
        return
    key = fingerprint("night page", PAGE_VERSION, Throne(layout).seal)
    if _written(layout) == key:
        return
    from mesa_pipeline.reports.champion import night_report  # draws with matplotlib, which only a new page needs to load
    from mesa_pipeline.reports.html import render_html
    from mesa_pipeline.reports.markdown import render_markdown

    made = night_report(layout.dataset, history)
    (layout.champion / METRICS).unlink(missing_ok=True)
    write_text(layout.champion / PAGE, render_html(made))
    write_text(layout.champion / MARKDOWN, render_markdown(made))
    for figure in made.figures:
        write_text(layout.champion / "figures" / f"{figure.name}.svg", figure.svg)
    write_sealed_json(layout.champion / METRICS, {"fingerprint": key, **history.nights[-1].metrics})


def _written(layout: Layout) -> str | None:
    try:
        return str(read_json(layout.champion / METRICS, "mesa nightly")["fingerprint"])
    except ArtifactError:
        return None
