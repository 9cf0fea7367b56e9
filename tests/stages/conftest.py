"""A small pipeline, run once, that the stage tests look into or copy."""

import shutil
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import Settings, load_settings
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
from tests.conftest import REPOSITORY

SMALL = (
    "datasets.synthetic.episodes=10",
    "datasets.synthetic.steps=16",
    "datasets.synthetic.questions=4",
    "splits.seeds=[0, 1]",
    "evaluation.bootstrap_samples=200",
    "tracking.enabled=false",
    "run.workers=1",
)


@pytest.fixture(scope="session")
def small_settings() -> Settings:
    return load_settings(REPOSITORY / "params.yaml", SMALL, {})


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


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, small_settings) -> StageContext:
    """A workspace ready to be swept; do not change it."""
    context = StageContext(Layout(tmp_path_factory.mktemp("prepared"), "synthetic"), small_settings)
    prepare(context)
    return context


@pytest.fixture(scope="session")
def finished(prepared, tmp_path_factory) -> StageContext:
    """A workspace with everything made; do not change it."""
    context = copy_of(prepared, tmp_path_factory.mktemp("finished"))
    sweep(context)
    conclude(context)
    return context


def copy_of(context: StageContext, workspace: Path) -> StageContext:
    """The same artifacts in another workspace, free to be changed."""
    shutil.copytree(context.layout.workspace, workspace, dirs_exist_ok=True)
    return StageContext(Layout(workspace, context.dataset), context.settings)
