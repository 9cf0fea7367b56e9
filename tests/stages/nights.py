"""Nights for tests: the small pipeline, with data that comes, goes and changes."""

from datetime import UTC, datetime
from pathlib import Path

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.evaluation.nights import Night
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.champion import challenge, re_evaluate
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.reigns import Throne
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.subsets import STRUCTURE_CODES
from mesa_pipeline.tracking import NullTracker, Tracker
from mesa_pipeline.types import Summary
from tests.pipeline import SMALL

PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"
SMALL_NIGHT = (*SMALL, "search.iterations=0", "nightly.min_episodes=4")
"""Without an iteration the challenger is the policy that reads all five structures."""


def small_night_settings(*overrides: str) -> Settings:
    return load_settings(PARAMS, (*SMALL_NIGHT, *overrides), {})


def context_of(workspace: Path, *overrides: str, data: Path | None = None) -> StageContext:
    dataset = "synthetic" if data is None else "traces"
    return StageContext(Layout(workspace, dataset), small_night_settings(*overrides), data)


def at_night(number: int) -> datetime:
    """Three o'clock of a night."""
    return datetime(2030, 1, number, 3, tzinfo=UTC)


def night(context: StageContext, number: int = 1, tracker: Tracker | None = None) -> dict[str, Summary]:
    """Everything that ``mesa nightly`` does; what each stage did, by its name."""
    tracker = tracker or NullTracker()
    done = [ingest(context)]
    done += [build(context, code) for code in STRUCTURE_CODES]
    done += [retrieve(context, code) for code in STRUCTURE_CODES]
    done += [sweep(context), challenge(context, tracker), re_evaluate(context, tracker, lambda: at_night(number))]
    return {summary.stage: summary for summary in done}


def last_night(context: StageContext) -> Night:
    return Throne(context.layout).nights()[-1]
