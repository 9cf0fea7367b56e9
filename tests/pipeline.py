"""A small pipeline for tests: its settings, and its stages in order."""

import shutil
from pathlib import Path

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.report import report
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.split import split
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.stages.test import test as run_test
from mesa_pipeline.subsets import STRUCTURE_CODES
from mesa_pipeline.tracking import NullTracker
from mesa_pipeline.types import Summary

SMALL = (
    "datasets.synthetic.episodes=10",
    "datasets.synthetic.steps=16",
    "datasets.synthetic.questions=4",
    "splits.seeds=[0, 1]",
    "evaluation.bootstrap_samples=200",
    "search.iterations=2",
    "tracking.enabled=false",
    "run.workers=1",
)


def prepare(context: StageContext) -> list[Summary]:
    """Everything before the sweep."""
    done = [ingest(context)]
    done += [build(context, code) for code in STRUCTURE_CODES]
    done += [retrieve(context, code) for code in STRUCTURE_CODES]
    done += [split(context, seed) for seed in context.settings.splits.seeds]
    return done


def conclude(context: StageContext) -> list[Summary]:
    """Everything after the sweep."""
    tracker = NullTracker()
    done = [optimize(context, seed, tracker) for seed in context.settings.splits.seeds]
    done += [run_test(context, seed, tracker) for seed in context.settings.splits.seeds]
    return [*done, report(context)]


def run_all(context: StageContext) -> list[Summary]:
    return [*prepare(context), sweep(context), *conclude(context)]


def copy_of(context: StageContext, workspace: Path) -> StageContext:
    """The same artifacts in another workspace, free to be changed."""
    shutil.copytree(context.layout.workspace, workspace, dirs_exist_ok=True)
    return StageContext(Layout(workspace, context.dataset), context.settings)
