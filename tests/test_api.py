from pathlib import Path

import pytest

from mesa_pipeline.api import Mesa
from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.types import Step, Trajectory

DRAWER = Trajectory(
    "mine",
    "Leave the house",
    (
        Step(0, "open drawer", "It holds a brass key."),
        Step(1, "go north", "A locked gate."),
        Step(2, "unlock gate", "It opens."),
    ),
)


def test_a_fixed_subset_reads_just_its_structures(tmp_path, small_settings):
    mesa = Mesa(tmp_path, "T+R", small_settings)
    result = mesa.ask("What does the drawer hold?", DRAWER)
    assert "brass key" in result.answer.text
    assert set(result.evidence) == {"T", "R"}
    assert sorted(path.name for path in (tmp_path / "asked" / "memories").iterdir()) == ["raw", "temporal"]


def test_a_memory_is_built_once_and_anew_when_the_trajectory_changes(tmp_path, small_settings):
    mesa = Mesa(tmp_path, "R", small_settings)
    question = "What did the drawer hold?"
    mesa.ask(question, DRAWER)
    (stored,) = (tmp_path / "asked" / "memories" / "raw").glob("*.jsonl")
    before = stored.stat().st_mtime_ns
    mesa.ask(question, DRAWER)
    assert stored.stat().st_mtime_ns == before
    changed = Trajectory("mine", "Leave the house", (Step(0, "open drawer", "It holds a silver coin."),))
    assert "silver coin" in mesa.ask(question, changed).answer.text


def test_the_policy_frozen_last_is_the_default(finished):
    mesa = Mesa(finished.layout.workspace, settings=finished.settings)
    result = mesa.ask("What happened at step 1?", DRAWER)
    assert result.reason
    assert result.composed.tokens > 0


@pytest.mark.parametrize(("policy", "said"), [(None, "mesa run"), ("S+Q", "S\\+T"), (Path("nowhere"), "folder")])
def test_a_policy_that_is_not_there_is_named(tmp_path, small_settings, policy, said):
    with pytest.raises(ArtifactError, match=said):
        Mesa(tmp_path, policy, small_settings)


def test_a_limit_of_one_question_goes_before_that_of_all(tmp_path, small_settings):
    mesa = Mesa(tmp_path, "T+R", small_settings, max_evidence_tokens=0)
    assert mesa.ask("What does the drawer hold?", DRAWER).composed.tokens == 0
    assert "brass key" in mesa.ask("What does the drawer hold?", DRAWER, max_evidence_tokens=5000).answer.text


@pytest.mark.parametrize("limit", [-1, 1.5, "many", True])
def test_a_limit_that_is_none_is_refused(tmp_path, small_settings, limit):
    with pytest.raises(ConfigError, match="max_evidence_tokens"):
        Mesa(tmp_path, "T+R", small_settings, max_evidence_tokens=limit)
    with pytest.raises(ConfigError, match="max_evidence_tokens"):
        Mesa(tmp_path, "T+R", small_settings).ask("What?", DRAWER, max_evidence_tokens=limit)
