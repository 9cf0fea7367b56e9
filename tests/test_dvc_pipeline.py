"""The DVC pipeline: it says what the command line and the settings can do, and reruns what depends on a change."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from mesa_pipeline.cli import mesa
from mesa_pipeline.reports.comparing import BUDGET_COLUMNS, SEARCH_COLUMNS, SUBSET_COLUMNS
from mesa_pipeline.subsets import STRUCTURE_NAMES

REPOSITORY = Path(__file__).resolve().parent.parent
DVC = REPOSITORY / ".venv-dvc" / "bin" / "dvc"
TINY = {"episodes": 6, "steps": 12, "questions": 4}


@pytest.fixture(scope="module")
def pipeline() -> dict[str, Any]:
    return yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())


def named_params(stage: dict[str, Any]) -> list[str]:
    """The settings that a stage depends on by name; a mapping stands for a whole file."""
    return [name for name in stage.get("params", ()) if isinstance(name, str)]


def definitions(pipeline: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every stage, those of ``foreach`` once for each item, with the item filled in."""
    for stage in pipeline["stages"].values():
        if "foreach" not in stage:
            yield stage
            continue
        for key, item in stage["foreach"].items():
            text = yaml.safe_dump(stage["do"]).replace("${key}", key).replace("${item.code}", item["code"])
            yield yaml.safe_load(text)


def test_every_stage_is_a_command_of_mesa(pipeline: dict[str, Any]):
    for stage in definitions(pipeline):
        program, name, *arguments = stage["cmd"].replace("${source.options}", "").split()
        assert program == "mesa"
        command = mesa.commands[name]
        command.make_context(name, arguments, resilient_parsing=False)


def test_every_command_that_makes_artifacts_is_a_stage(pipeline: dict[str, Any]):
    shown_only = {"run", "ask", "doctor", "ui", "ledger", "up", "down", "status", "champion", "track"}
    # take as long as the rest together, or ask models: not for every `dvc repro`
    asked_for = {"ablate", "judge", "baselines", "nightly"}
    assert set(pipeline["stages"]) == set(mesa.commands) - shown_only - asked_for
    assert all(isinstance(mesa.commands[name], click.Command) for name in pipeline["stages"])


def test_the_structures_are_those_of_the_system(pipeline: dict[str, Any]):
    items = {item["code"]: name for name, item in pipeline["stages"]["build"]["foreach"].items()}
    assert items == STRUCTURE_NAMES
    assert pipeline["stages"]["retrieve"]["foreach"] == pipeline["stages"]["build"]["foreach"]


def test_every_parameter_is_a_setting(pipeline: dict[str, Any]):
    params = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
    for stage in definitions(pipeline):
        for name in named_params(stage):
            value = params
            for key in name.split("."):
                assert key in value, name
                value = value[key]


def test_a_profile_which_changes_any_setting_is_a_parameter_of_every_stage(pipeline: dict[str, Any]):
    for stage in definitions(pipeline):
        assert {"profile", "profiles"} <= set(named_params(stage)) or stage["params"] == [{"params.yaml": None}]


def test_metrics_and_plots_are_what_a_report_writes(pipeline: dict[str, Any]):
    columns = {"budget-curve": BUDGET_COLUMNS, "search-curve": SEARCH_COLUMNS, "subset-points": SUBSET_COLUMNS}
    templates = {path.stem for path in (REPOSITORY / ".dvc" / "plots").glob("*.json")} | {"bar_horizontal_sorted"}
    assert [Path(path).name for path in pipeline["metrics"]] == ["headline.json"]
    for (plot,) in (entry.values() for entry in pipeline["plots"]):
        assert plot["template"] in templates
        for path, drawn in plot["y"].items():
            assert path == f"workspace/${{source.dataset}}/report/plots/{Path(path).name}"
            assert {plot["x"], *([drawn] if isinstance(drawn, str) else drawn)} <= set(columns[Path(path).stem])


def test_code_named_as_a_dependency_is_there(pipeline: dict[str, Any]):
    for stage in definitions(pipeline):
        for path in stage["deps"]:
            assert path.startswith(("workspace/", "${source.made_from}")) or (REPOSITORY / path).exists()


def test_outputs_are_kept_between_runs_so_that_the_core_can_continue(pipeline: dict[str, Any]):
    for stage in definitions(pipeline):
        assert all(options == {"persist": True} for output in stage["outs"] for options in output.values())


@pytest.mark.system
@pytest.mark.timeout(900)
def test_a_real_reproduction_reruns_only_what_depends_on_a_change_and_reaches_another_clone(tmp_path: Path):
    if not DVC.exists():
        pytest.skip("DVC is not installed; make its environment with `make dvc-setup`")
    clone = tiny_clone(tmp_path / "clone")

    first = dvc(clone, "repro")
    assert "Running stage 'report'" in first
    assert "Data and pipelines are up to date" in dvc(clone, "status")

    commit(clone, "first")

    changed = dvc(clone, "exp", "run", "-S", "structures.raw.top_k=1")
    assert "Running stage 'retrieve@raw'" in changed
    assert "Running stage 'sweep'" in changed
    others = [f"{stage}@{name}" for stage in ("build", "retrieve") for name in STRUCTURE_NAMES.values() if name != "raw"]
    assert not [stage for stage in ("ingest", "split", *others) if f"Running stage '{stage}'" in changed]
    assert not list((clone / "workspace").rglob("*.partial"))
    assert {"score", "gain_over_all_five", "tokens_percent"} <= set(dvc(clone, "metrics", "diff", "--all", "--md").split())
    assert "structures.raw.top_k" in dvc(clone, "params", "diff")
    plots = json.loads(dvc(clone, "plots", "diff", "HEAD", "--json").splitlines()[-1])["data"]
    assert {revision for drawn in plots.values() for plot in drawn for revision in plot["revisions"]} == {"HEAD", "workspace"}

    commit(clone, "changed")
    assert "pushed" in dvc(clone, "push")
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "--quiet", str(clone), str(other)], check=True)
    dvc(other, "pull")
    assert "Data and pipelines are up to date" in dvc(other, "status")
    done = mesa_in(other, "run", "--json")
    assert sum(stage["made"] for stage in json.loads(done)["stages"]) == 0
    assert "Data and pipelines are up to date" in dvc(other, "status")


def tiny_clone(folder: Path) -> Path:
    """The committed files and those of the working tree that DVC reads, with settings that take seconds."""
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(folder)], check=True)
    for name in ("dvc.yaml", ".dvcignore"):
        shutil.copy(REPOSITORY / name, folder / name)
    shutil.copytree(REPOSITORY / ".dvc", folder / ".dvc", dirs_exist_ok=True, ignore=shutil.ignore_patterns("tmp", "cache"))
    shutil.copytree(REPOSITORY / "mesa_pipeline", folder / "mesa_pipeline", dirs_exist_ok=True)
    params = yaml.safe_load((REPOSITORY / "params.yaml").read_text())
    params["datasets"]["synthetic"].update(TINY)
    params["search"]["iterations"] = 1
    params["splits"]["seeds"] = [0]
    params["tracking"]["enabled"] = False
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    return folder


def commit(clone: Path, subject: str) -> None:
    for command in (
        ["add", "--all"],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", subject],
    ):
        subprocess.run(["git", *command], cwd=clone, check=True)


def mesa_in(clone: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "mesa_pipeline.cli", *arguments]
    return subprocess.run(command, cwd=clone, env=environment(clone), capture_output=True, text=True, check=True).stdout


def dvc(clone: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(DVC), *arguments], cwd=clone, env=environment(clone), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def environment(clone: Path) -> dict[str, str]:
    """The clone's own code and settings, whatever the surroundings are."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MESA_")}
    return {**inherited, "PATH": path, "PYTHONPATH": str(clone), "DVC_NO_ANALYTICS": "1"}
