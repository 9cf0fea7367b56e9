"""`mesa ask` within a token budget, as a person or a script meets it."""

import json

import pytest
from click.testing import CliRunner

from mesa_pipeline.cli import mesa


@pytest.fixture
def ask(tmp_path):
    log = tmp_path / "run.json"
    steps = [{"action": f"open box {k}", "observation": f"Box {k} holds a {'golden ' * k}coin."} for k in range(9)]
    log.write_text(json.dumps(steps), encoding="utf-8")

    def asked(*arguments: str):
        options = ["--data", str(log), "--policy", "T+R", "--workspace", str(tmp_path / "w"), *arguments]
        return CliRunner().invoke(mesa, ["ask", *options, "What does box 3 hold?"])

    return asked


@pytest.mark.parametrize("limit", [0, 1, 30, 60])
def test_a_script_is_told_what_the_budget_changed(ask, limit):
    result = json.loads(ask("--json", "--max-evidence-tokens", str(limit)).output)
    budget = result["budget"]
    assert result["evidence_tokens"] <= limit == budget["max_evidence_tokens"]
    assert budget["policy_choice"] == ["temporal", "raw"]
    assert budget["policy_choice_tokens"] > limit
    assert not budget["kept"]
    assert set(budget["dropped"]) | set(result["structures"]) == {"temporal", "raw"}


def test_a_person_is_told_too(ask):
    shown = ask("--max-evidence-tokens", "0").output
    assert "No answer" in shown
    assert "Read:   nothing" in shown
    assert "Tokens: 0 of 0 allowed" in shown
    assert "more than the 0 allowed" in shown


def test_a_huge_budget_changes_nothing(ask):
    free, bound = (json.loads(ask("--json", *limit).output) for limit in ([], ["--max-evidence-tokens", "9999999"]))
    assert free["budget"] is None
    assert bound["budget"]["kept"]
    assert (bound["answer"], bound["evidence"]) == (free["answer"], free["evidence"])


def test_a_file_that_cannot_be_read_is_left_out_on_request(tmp_path):
    (tmp_path / "bad.json").write_text('{"steps": [{"act": "go"}]}', encoding="utf-8")
    (tmp_path / "good.json").write_text('[{"action": "open box", "observation": "It holds a coin."}]', encoding="utf-8")
    asked = ["ask", "--data", str(tmp_path), "--policy", "T", "--workspace", str(tmp_path / "w"), "What does the box hold?"]
    refused = CliRunner().invoke(mesa, asked)
    assert "--skip-invalid" in str(refused.exception)
    assert "coin" in CliRunner().invoke(mesa, [*asked, "--skip-invalid"]).output


@pytest.mark.parametrize("limit", ["-1", "1.5", "many", ""])
def test_a_limit_that_is_none_is_refused(ask, limit):
    result = ask("--max-evidence-tokens", limit)
    assert result.exit_code == 2
    assert "--max-evidence-tokens" in result.output
