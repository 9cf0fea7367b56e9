import platform
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_pipeline.api import Mesa
from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.policies import ExecutablePolicy, FittedPolicy
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import Provenance, freeze, load_frozen
from mesa_pipeline.subsets import encode
from mesa_pipeline.types import Step, Trajectory
from tests.conftest import REPOSITORY
from tests.policies.sandbox.weak_host import WEAKEN

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


BY_PREVIEW = """
META = {"direction": "evidence-quality", "hypothesis": "What mentions the key is enough.", "parents": []}


def select(state, q):
    named = [code for code in ["S", "T", "G", "V", "R"] if state in q["previews"][code]["text"]]
    return named if "key" in q["question"] and named else ["R"]
"""


@pytest.fixture
def frozen_code(tmp_path, small_settings):
    """The folder of a frozen policy that is code."""
    sandbox = open_sandbox(small_settings.policies.sandbox)
    fitted = FittedPolicy(ExecutablePolicy("previews", BY_PREVIEW, sandbox), "brass key")
    made_from = Provenance("mine", 0, {}, "r", "j", "e", "t", "p", "s")
    freeze(tmp_path / "frozen", fitted, made_from, Evaluation("p", "executable", 1, 1.0, 1.0, 1.0, 1.0, 0), sandbox=sandbox)
    return tmp_path / "frozen"


def test_frozen_code_decides_what_is_read(tmp_path, small_settings, frozen_code):
    mesa = Mesa(tmp_path, frozen_code, small_settings)
    result = mesa.ask("Where was the key?", DRAWER)
    assert 1 < len(result.evidence) <= 5
    assert all("brass key" in "".join(item.text for item in found.items) for found in result.evidence.values())
    assert result.reason.startswith("previews: What mentions the key is enough. -> ")
    assert set(mesa.ask("Where is north?", DRAWER).evidence) == {"R"}


def test_code_that_was_tampered_with_is_not_run(tmp_path, small_settings, frozen_code):
    (frozen_code / "policy.py").write_text(BY_PREVIEW.replace('["R"]', '["S"]'))
    with pytest.raises(ArtifactError, match=r"policy\.py was changed"):
        Mesa(tmp_path, frozen_code, small_settings)


SERVE = (
    WEAKEN
    + """
import sys
from pathlib import Path
from mesa_pipeline.api import Mesa
from mesa_pipeline.config import load_settings
try:
    Mesa(Path(sys.argv[1]), sys.argv[2], load_settings(Path("params.yaml"), environment={}))
except Exception as error:
    print(type(error).__name__, error)
"""
)


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the filter's numbers are those of x86-64"
)
def test_code_of_a_model_is_not_served_where_the_kernel_cannot_confine_it(tmp_path, frozen_code):
    command = [sys.executable, "-c", SERVE, str(tmp_path), str(frozen_code)]
    said = subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True, text=True).stdout
    assert said.startswith("PolicyError a language model's code is not run in a weak sandbox")


def test_what_a_search_froze_is_served(finished):
    folder = finished.layout.policy(1) / "frozen"
    result = Mesa(finished.layout.workspace, folder, finished.settings).ask("How many steps did it take?", DRAWER)
    frozen = load_frozen(folder, open_sandbox(finished.settings.policies.sandbox))
    assert result.reason.startswith(f"{frozen.name}: ")
    assert encode(result.evidence) == result.subset


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
