"""The Helm values against Dagster's own Kubernetes library; neither Helm nor a cluster is used."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._config import process_config
from dagster_k8s import k8s_job_executor
from dagster_k8s.container_context import K8sContainerContext
from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job

from mesa_pipeline.config import load_settings
from mesa_pipeline.defs.executors import EXECUTORS

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "infra" / "kubernetes"


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def code(values: dict[str, Any]) -> dict[str, Any]:
    [deployment] = values["dagster-user-deployments"]["deployments"]
    return dict(deployment)


def test_the_settings_in_it_are_settings(code: dict[str, Any]):
    settings = load_settings(REPOSITORY / "params.yaml", environment=code["env"], profile=code["env"]["MESA_PROFILE"])
    assert settings.stores.texts == "elasticsearch"
    assert settings.nightly.automatic
    assert code["env"]["MESA_EXECUTOR"] in EXECUTORS
    assert code["includeConfigInLaunchedRuns"] == {"enabled": True}


def test_secrets_are_named_and_not_told(values: dict[str, Any], code: dict[str, Any]):
    assert [secret["name"] for secret in code["envSecrets"]] == ["mesa-secrets"]
    told = yaml.safe_dump(values)
    assert not re.search(r"(password|_key|token)\b\s*[:=]\s*\S", told, re.IGNORECASE)
    assert not re.search(r"://[^/\s]*:[^/\s]*@", told)


def test_what_a_step_needs_reaches_its_pod(values: dict[str, Any], code: dict[str, Any]):
    """As the chart hands it on: the deployment's environment and volumes, then the launcher's shape of the pod."""
    shape = values["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]
    context = K8sContainerContext.create_from_config(
        {
            "k8s": {
                "env_vars": [f"{name}={value}" for name, value in code["env"].items()],
                "env_secrets": [secret["name"] for secret in code["envSecrets"]],
                "volumes": code["volumes"],
                "volume_mounts": code["volumeMounts"],
                "run_k8s_config": {re.sub("([A-Z])", r"_\1", name).lower(): part for name, part in shape.items()},
            }
        }
    )
    image = DagsterK8sJobConfig("mesa-pipeline:1", values["global"]["dagsterHome"], "instance")
    job = construct_dagster_k8s_job(image, ["dagster"], "job", context.run_k8s_config)
    pod = job.to_dict()["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["volumes"][-1]["persistent_volume_claim"]["claim_name"] == "mesa-workspace"
    assert {"name": "MESA_WORKSPACE", "value": "/workspace", "value_from": None} in container["env"]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "8Gi"}
    assert container["security_context"]["allow_privilege_escalation"] is False
    assert pod["security_context"]["run_as_user"] == 1000


def test_the_run_config_of_single_steps_is_one_of_the_executor():
    config = yaml.safe_load((FOLDER / "step-resources.yaml").read_text())["execution"]["config"]
    checked = process_config(k8s_job_executor.config_schema.config_type, config)
    assert checked.success, checked.errors


def test_pods_share_the_workspace_that_is_claimed(code: dict[str, Any]):
    claim = yaml.safe_load((FOLDER / "workspace-claim.yaml").read_text())
    [volume] = code["volumes"]
    assert claim["metadata"]["name"] == volume["persistentVolumeClaim"]["claimName"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert code["env"]["MESA_WORKSPACE"] == code["volumeMounts"][0]["mountPath"]
