"""A frozen policy that is code, registered, and loaded by MLflow alone in a process that knows nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_pipeline.evaluation.evaluate import evaluate_policy
from mesa_pipeline.policies import ExecutablePolicy, FitContext, PolicyInput
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import Provenance, freeze, load_frozen
from mesa_pipeline.stages.search_tracking import tracked_policy
from mesa_pipeline.subsets import label
from mesa_pipeline.tracking import CHAMPION, TrackedSearch
from tests.conftest import REPOSITORY
from tests.policies.sandbox.weak_host import WEAKEN
from tests.policies.test_executable import BY_DOMAIN

DATASET = "loaded"
CONTEXT = FitContext(1e-4, 20.0, seed=5)
PICKLES = (".pkl", ".pickle", ".joblib", ".npy", ".pt")
PREDICT = """
import json, sys
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
try:
    model = mlflow.pyfunc.load_model(sys.argv[2])
except Exception as error:
    print("refused:", error)
else:
    rows = json.loads(sys.stdin.read())
    print(json.dumps(model.predict(rows).to_dict("records")))
"""


@pytest.fixture(scope="session")
def frozen_by(tmp_path_factory, settings):
    """Freezes a policy that learnt S for games and T for the web, as the work of a proposer."""

    def frozen(matrix, proposer: str) -> Path:
        folder = tmp_path_factory.mktemp("frozen")
        sandbox = open_sandbox(settings.policies.sandbox)
        fitted = ExecutablePolicy("by domain", BY_DOMAIN, sandbox).fitted(matrix, CONTEXT)
        provenance = Provenance(DATASET, 0, {}, "extractive", "token_f1", "none", "words", proposer, "f00d", "offline")
        freeze(folder, fitted, provenance, evaluate_policy(fitted, matrix, 1e-4), sandbox=sandbox)
        return folder

    return frozen


def registered(folder: Path, settings, tracker, key: str):
    policy = load_frozen(folder, open_sandbox(settings.policies.sandbox))
    tracker.promote(TrackedSearch(DATASET, 0, key), tracked_policy(folder, policy), CHAMPION)
    return policy


def predicted(layout, rows, prelude: str = "") -> str:
    command = [
        sys.executable,
        "-c",
        prelude + PREDICT,
        f"sqlite:///{layout.tracking_database}",
        f"models:/policy-{DATASET}@champion",
    ]
    done = subprocess.run(command, input=json.dumps(rows), capture_output=True, text=True, cwd=REPOSITORY, check=True)
    return done.stdout


def test_what_mlflow_loads_chooses_as_the_frozen_policy(frozen_by, six_questions, settings, tracker, layout, client):
    frozen = registered(frozen_by(six_questions, "template"), settings, tracker, "trusted")
    asked = [*policy_inputs(six_questions, True), PolicyInput("my own question\u202e {x}", {}, 0)]
    rows = [{"question": q.question, "metadata": {**q.meta, "steps": q.steps}} for q in asked[:-1]]
    found = json.loads(predicted(layout, [*rows, {"question": asked[-1].question}]))
    assert [row["structures"] for row in found] == [label(frozen.select(question)) for question in asked]
    assert {row["structures"] for row in found} == {"S", "T", "V+R"}
    assert found[0]["reason"] == "by domain: A test. -> S"

    version = client.get_model_version_by_alias(f"policy-{DATASET}", CHAMPION)
    assert version.tags["mesa.profile"] == "offline"
    assert version.tags["mesa.validation_score"] == f"{100 * frozen.validation.score:.2f}"
    files = [path for path in Path(version.source.removeprefix("file://")).rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in PICKLES or path.read_bytes()[:1] == b"\x80"]


def test_a_weak_sandbox_does_not_load_a_language_models_code(frozen_by, six_questions, settings, tracker, layout):
    registered(frozen_by(six_questions, "llm:any"), settings, tracker, "untrusted")
    assert predicted(layout, [], prelude=WEAKEN).startswith("refused: a language model's code is not run in a weak sandbox")
