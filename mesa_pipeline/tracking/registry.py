"""Frozen policies in MLflow's model registry: the model ``policy-<dataset>``, a version per search, aliases for people.

A version's files are those of the frozen policy, in a folder of their own, and what tells ``mlflow.pyfunc`` how to load them:
a name of a module of this package, no pickled code (docs/decisions/0114-policies-in-the-model-registry.md).
"""

import json
import platform
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.models import Model, ModelSignature
from mlflow.types.schema import AnyType, ColSpec, DataType, Schema

from mesa_pipeline import __version__
from mesa_pipeline.tracking import TrackedPolicy, TrackedSearch

KEY_TAG = "mesa.search_key"
SEED_TAG = "mesa.split_seed"
DATASET_TAG = "mesa.dataset"
POLICY_ARTIFACTS = "policy"
MODEL_FILE = "MLmodel"
REQUIREMENTS_FILE = "requirements.txt"
ENVIRONMENT_FILE = "python_env.yaml"
EXAMPLE_FILE = "input_example.json"
FROZEN_FOLDER = "frozen"
LOADER = "mesa_pipeline.served_policy"
"""Named and not imported: it stands above this package, as what it loads does."""
SIGNATURE = ModelSignature(
    inputs=Schema([ColSpec(DataType.string, "question"), ColSpec(AnyType(), "metadata", required=False)]),
    outputs=Schema([ColSpec(DataType.string, name) for name in ("structures", "reason")]),
)
EXAMPLE = {"columns": ["question"], "data": [["Which command failed at step 12?"]]}


def model_name(dataset: str) -> str:
    """Name of the registered model of a dataset's policies."""
    return f"policy-{dataset}"


def register(client: MlflowClient, run: Run, search: TrackedSearch, policy: TrackedPolicy, aliases: Sequence[str]) -> None:
    """Make a search's frozen policy a version of the dataset's model, once, and point aliases at it.

    Args:
        client: Where to.
        run: The search's run, whose artifacts the model's files become.
        search: The search.
        policy: What it froze.
        aliases: Names that point at the version from now on.
    """
    version = _version(client, run, search, policy)
    for alias in aliases:
        client.set_registered_model_alias(model_name(search.dataset), alias, version)


def _version(client: MlflowClient, run: Run, search: TrackedSearch, policy: TrackedPolicy) -> str:
    name = model_name(search.dataset)
    known = client.search_model_versions(f"run_id = '{run.info.run_id}'")
    if known:
        return str(known[0].version)
    _log_model(client, run, policy.directory)
    if not client.search_registered_models(f"name = '{name}'"):
        client.create_registered_model(name, description=_about(search.dataset))
    tags = {**policy.tags, DATASET_TAG: search.dataset, SEED_TAG: str(search.seed), KEY_TAG: search.key}
    source = f"{run.info.artifact_uri}/{POLICY_ARTIFACTS}"
    created = client.create_model_version(name, source, run.info.run_id, tags=tags, description=policy.description)
    return str(created.version)


def _log_model(client: MlflowClient, run: Run, directory: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(directory, folder / FROZEN_FOLDER)
        (folder / EXAMPLE_FILE).write_text(json.dumps(EXAMPLE))
        (folder / REQUIREMENTS_FILE).write_text(f"mesa-pipeline=={__version__}\n")
        environment = {"python": platform.python_version(), "dependencies": [f"-r {REQUIREMENTS_FILE}"]}
        (folder / ENVIRONMENT_FILE).write_text(yaml.safe_dump(environment))
        model = Model(
            artifact_path=POLICY_ARTIFACTS,
            run_id=run.info.run_id,
            signature=SIGNATURE,
            saved_input_example_info={"artifact_path": EXAMPLE_FILE, "type": "dataframe", "pandas_orient": "split"},
        )
        model.add_flavor(
            "python_function",
            loader_module=LOADER,
            data=FROZEN_FOLDER,
            env={"virtualenv": ENVIRONMENT_FILE},
            python_version=platform.python_version(),
        )
        model.save(str(folder / MODEL_FILE))
        client.log_artifacts(run.info.run_id, str(folder), POLICY_ARTIFACTS)


def _about(dataset: str) -> str:
    return (
        f"Policies searched for on {dataset}: which of five memory structures to read for a question. "
        f"`mlflow.pyfunc.load_model('models:/{model_name(dataset)}@champion')` loads the one in use; `predict` takes questions."
    )
