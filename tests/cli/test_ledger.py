import json
from pathlib import Path

from click.testing import CliRunner

from mesa_pipeline.cli import mesa
from mesa_pipeline.llm.ledger import Attempt, Ledger, Usage


def run(workspace: Path, *arguments: str) -> str:
    result = CliRunner().invoke(mesa, ["ledger", "--workspace", str(workspace), *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def spend(workspace: Path) -> None:
    ledger = Ledger(workspace / "llm" / "ledger.sqlite")
    ledger.record(Attempt("build", "m/32B", "1", "ok", 1.25, Usage(12_345, 1_000, 200)))
    ledger.record(Attempt("answer", "m/32B", "2", "passing: HTTP 429: busy", 0.5))
    ledger.record_replays("answer", "m/32B", 3)


def test_spending_is_a_table_with_a_total(tmp_path: Path):
    spend(tmp_path)
    assert run(tmp_path).splitlines() == [
        "phase   model  attempts  failed  replayed  prompt  cached  completion  seconds",
        "answer  m/32B         1       1         3       0       0           0      0.5",
        "build   m/32B         1       0         0  12,345   1,000         200      1.2",
        "total                 2       1         3  12,345   1,000         200      1.8",
    ]


def test_scripts_read_json(tmp_path: Path):
    spend(tmp_path)
    result = json.loads(run(tmp_path, "--json"))
    assert [line["phase"] for line in result["spending"]] == ["answer", "build"]
    assert result["total"] == {
        "phase": "total",
        "model": "",
        "attempts": 2,
        "failed": 1,
        "replayed": 3,
        "prompt_tokens": 12_345,
        "cached_tokens": 1_000,
        "completion_tokens": 200,
        "seconds": 1.75,
    }


def test_a_workspace_without_models_says_so_and_is_left_alone(tmp_path: Path):
    assert "No model behind an endpoint was asked" in run(tmp_path / "new")
    assert json.loads(run(tmp_path / "new", "--json"))["total"]["attempts"] == 0
    assert not (tmp_path / "new").exists()


def test_a_model_named_to_confuse_the_terminal_does_not(tmp_path: Path):
    Ledger(tmp_path / "llm" / "ledger.sqlite").record(Attempt("answer", "[red]\x1b[2Jm", "1", "ok", 0.0))
    assert "[red]\\x1b[2Jm" in run(tmp_path)
