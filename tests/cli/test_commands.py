"""The commands as a person or a script meets them."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from mesa_pipeline.cli import mesa
from mesa_pipeline.stages.context import StageContext
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL, copy_of

OVERRIDES = [argument for override in SMALL for argument in ("--set", override)]


def run(*arguments, code=0):
    """What `mesa` prints and how it exits, as its own process."""
    done = subprocess.run(
        [sys.executable, "-m", "mesa_pipeline.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("command", list(mesa.commands))
def test_every_command_explains_itself(command):
    result = CliRunner().invoke(mesa, [command, "--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


def test_the_commands_stand_in_the_order_they_are_used():
    listed = CliRunner().invoke(mesa, ["--help"]).output.partition("Commands:")[2]
    positions = [
        listed.index(f"\n  {name} ") for name in ("run", "ingest", "build", "sweep", "optimize", "test", "report", "ask")
    ]
    assert positions == sorted(positions)


@pytest.mark.parametrize("group", [[], ["baselines"], ["champion"]])
def test_no_sentence_of_the_list_of_commands_is_cut(group):
    help_text = CliRunner().invoke(mesa, [*group, "--help"], terminal_width=80).output
    assert "..." not in help_text.replace("[ARGS]...", "").replace("one, ...", "")
    assert max(map(len, help_text.splitlines())) <= 80


def test_a_finished_run_does_nothing_and_says_what_it_found(finished, tmp_path):
    copy_of(finished, tmp_path)
    done = run("run", "--workspace", tmp_path, *OVERRIDES)
    assert "of 100 on held-out questions" in done.stdout
    assert "report.html" in done.stdout
    result = json.loads(run("run", "--json", "--workspace", tmp_path, *OVERRIDES).stdout)
    assert [stage["stage"] for stage in result["stages"] if stage["made"]] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--dataset", "nonsense"], "synthetic"),
        (["run", "--dataset", "locomo"], "--data"),
        (["run", "--dataset", "locomo", "--data", "nowhere.json"], "nowhere.json"),
        (["run", "--set", "search.lamda=1"], "lamda"),
        (["run", "--params", "nowhere.yaml"], "nowhere.yaml"),
        (["sweep"], "mesa ingest"),
        (["optimize"], "mesa ingest"),
        (["report"], "mesa ingest"),
        (["build", "--structure", "X"], "'S', 'T', 'G', 'V', 'R'"),
        (["ingest", "--data", "/dev/null", "--dataset", "traces"], "is empty"),
        (["ask", "why?"], "mesa run"),
        (["ask", "--policy", "S+Q", "why?"], "S+T"),
        (["ask", "--policy", "S", "why?"], "--data"),
        (["ask", "--policy", "S", "--dataset", "synthetic", "why?"], "--episode"),
        (["ask", "--policy", "S", "--dataset", "synthetic", "--episode", "x", "why?"], "no episode 'x'"),
    ],
)
def test_what_cannot_work_is_one_message_and_exit_code_2(tmp_path, arguments, said):
    done = run(*arguments, "--workspace", tmp_path, code=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_question_over_ones_own_log(tmp_path):
    log = tmp_path / "log.jsonl"
    steps = [("open drawer", "It holds a brass key."), ("take key", "You have the brass key."), ("go north", "A locked gate.")]
    log.write_text("".join(json.dumps({"action": a, "observation": o}) + "\n" for a, o in steps))
    arguments = ["ask", "--data", log, "--policy", "T+R", "--workspace", tmp_path / "w", "What does the drawer hold at step 0?"]
    shown = run(*arguments).stdout
    assert "brass key" in shown.split("Read:")[0]
    assert "step 0" in shown
    result = json.loads(run(*arguments, "--json").stdout)
    assert result["structures"] == ["temporal", "raw"]
    assert "brass key" in result["answer"]
    assert result["evidence_tokens"] > 0
    assert {step for piece in result["evidence"] for step in piece["steps"]} >= {0}


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_log_commands_neither_the_terminal_nor_its_encoding(tmp_path, monkeypatch, encoding):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    log = tmp_path / "log.jsonl"
    steps = [(0, "open door", "\x1b]0;owned\x07\x1b[2J It is locked \ud800 \u202e é."), (10**30, "open door", "\0 It opens.")]
    log.write_text(json.dumps([{"index": i, "action": a, "observation": o} for i, a, o in steps]))
    shown = run("ask", "--full", "--data", log, "--policy", "S+T+R", "--workspace", tmp_path / "w", "Is the door open?").stdout
    assert "\\x1b[2J It is locked \\ud800" in shown
    assert not set(shown) & {"\x1b", "\x07", "\0"}


def test_a_frozen_policy_answers(finished: StageContext):
    workspace = finished.layout.workspace
    arguments = ["ask", "--dataset", "synthetic", "--episode", "synthetic-0001", "--workspace", workspace, *OVERRIDES]
    result = json.loads(run(*arguments, "--json", "What happened at step 3?").stdout)
    assert result["structures"]
    assert result["reason"]
    folder = finished.layout.policy(1) / "frozen"
    assert json.loads(run(*arguments, "--policy", folder, "--json", "What happened at step 3?").stdout)["structures"]


def test_a_tampered_policy_is_refused(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    state = context.layout.policy(0) / "frozen" / "state.json"
    state.write_text(state.read_text() + " ")
    arguments = ["ask", "--policy", state.parent, "--dataset", "synthetic", "--episode", "synthetic-0001"]
    said = run(*arguments, "--workspace", tmp_path, *OVERRIDES, "why?", code=2).stderr
    assert "state.json was changed; freeze it anew" in said


def test_doctor_tries_what_is_needed(tmp_path):
    result = json.loads(run("doctor", "--json", "--workspace", tmp_path).stdout)
    checks = {check["name"]: check for check in result["checks"]}
    assert result["ok"]
    assert "384 dimensions" in checks["embedder"]["detail"]
    assert checks["policy sandbox"]["detail"].startswith(("kernel: ", "process: "))
