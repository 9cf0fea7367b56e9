"""``mesa baselines`` as a person meets it, where nothing but this machine is there."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.cli import mesa
from mesa_pipeline.errors import MissingDependency

SETTINGS = (
    "datasets.synthetic.episodes=2",
    "datasets.synthetic.steps=10",
    "datasets.synthetic.questions=1",
    "run.workers=1",
    "tracking.enabled=false",
    "llm.embedder=all-MiniLM-L6-v2",
    "llm.chat.base_url=http://127.0.0.1:9/v1",  # nothing listens there
    "llm.chat.max_attempts=1",
)


def test_all_that_can_run_is_run_and_what_the_others_need_is_said_once(tmp_path: Path) -> None:
    overrides = [argument for setting in SETTINGS for argument in ("--set", setting)]
    result = CliRunner().invoke(mesa, ["baselines", "run", "--json", "--workspace", str(tmp_path), *overrides])
    assert result.exit_code == 0, result.output
    stages = {stage["stage"]: stage for stage in json.loads(result.stdout)["stages"]}
    assert set(stages) == {"ingest", *(f"baseline {baseline.title}" for baseline in BASELINES.values())}
    ran = {stage for stage, summary in stages.items() if summary["made"]}
    assert ran == {"ingest", "baseline Long-context", "baseline BM25", "baseline Flat dense"}
    reasons = [str(summary["facts"]["not_run"]) for stage, summary in stages.items() if stage not in ran]
    assert sum("cannot be reached" in reason for reason in reasons) == 1
    assert sum("for the reason of MemGPT" in reason for reason in reasons) == 7


def test_one_that_is_asked_for_and_cannot_run_is_a_mistake(tmp_path: Path) -> None:
    overrides = [argument for setting in SETTINGS for argument in ("--set", setting)]
    asked = ["baselines", "run", "--system", "mem0", "--workspace", str(tmp_path), *overrides]
    with pytest.raises(MissingDependency, match="mesa baselines install mem0"):
        CliRunner().invoke(mesa, asked, catch_exceptions=False, standalone_mode=False)
