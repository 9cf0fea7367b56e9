"""Two judges, scripted, on the answers of a tested policy."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.artifacts import read_header, read_records, write_records, write_sealed_json
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.stages.baselines import read_answers, run_baseline
from mesa_pipeline.stages.compare_systems import answered_systems
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.judge import judge, read_judgements
from mesa_pipeline.stages.models import judge_endpoint
from mesa_pipeline.stages.report import gather, report
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import read_manifest, read_outcomes
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.subsets import FULL_SUBSET
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import Exchange, MisbehavingServer, say, status
from tests.pipeline import SMALL, copy_of

SEED = 0
ASKS = 2


def lenient_or_strict(exchange: Exchange) -> None:
    """One judge finds everything right, the other nothing."""
    say("yes" if exchange.request.body["model"] == "lenient" else "no")(exchange)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(otherwise=lenient_or_strict) as server:
        yield server


@pytest.fixture
def context(server: MisbehavingServer, finished: StageContext, tmp_path: Path) -> StageContext:
    where = f"base_url: '{server.base_url}', key_variable: NO_SUCH_KEY"
    judges = ", ".join(f"{{name: {name}, model: {name}, {where}}}" for name in ("lenient", "strict"))
    overrides = [*SMALL, f"evaluation.judges=[{judges}]", f"evaluation.judge_asks={ASKS}", "llm.chat.max_attempts=1"]
    copied = copy_of(finished, tmp_path)
    return StageContext(copied.layout, load_settings(REPOSITORY / "params.yaml", overrides, {}))


def f1_of(context: StageContext, system: str) -> np.ndarray:
    """Token F1 of the answers that were judged, straight from the outcomes."""
    choices, held_out = read_test(context, SEED).choices, set(read_split(context, SEED).test)
    outcomes = [
        outcome
        for entry in read_manifest(context.layout).episodes
        if entry.id in held_out
        for outcome in read_outcomes(context.layout, entry.key)
    ]
    wanted: Callable[[str], int] = choices.__getitem__ if system == FROZEN_ROW else lambda _: FULL_SUBSET
    return np.array([outcome.score for outcome in outcomes if outcome.subset == wanted(outcome.question_id)])


def test_every_judge_scores_every_answer_and_the_report_shows_them(context: StageContext, server: MisbehavingServer):
    summary = judge(context, SEED)
    assert summary.failed == ()
    judged = read_judgements(context, SEED)
    accuracy = {(row.judge, row.system): row.accuracy for row in judged.rows}
    for system in (FROZEN_ROW, "all"):
        f1 = f1_of(context, system)
        assert accuracy["reward", system] == pytest.approx(f1.mean())
        assert (accuracy["lenient", system], accuracy["strict", system]) == (1.0, 0.0)
        assert accuracy["majority", system] == pytest.approx((f1 >= 0.5).mean())  # the other two cancel out
    leads = {lead.judge: lead for lead in judged.leads}
    shown = sum(leads["reward"].sums.values()) / sum(leads["reward"].counts.values())
    assert shown == pytest.approx(f1_of(context, FROZEN_ROW).mean() - f1_of(context, "all").mean())
    assert set(leads["lenient"].sums.values()) == {0.0}
    pairs = {(pair.first, pair.second): pair for pair in judged.agreements}
    assert pairs["lenient", "strict"].agreement == 0.0
    assert pairs["lenient", "strict"].answers == summary.made / 3
    assert judged.judges["strict"].startswith("llm_judge:strict (")

    report(context)
    document = (context.layout.report / "report.md").read_text()
    assert "## Judges" in document
    assert "Accuracy by judge" in document
    assert "MESA minus the others, by judge" in document
    asked = len(server.requests)
    assert judge(context, SEED).made == summary.made
    assert len(server.requests) == asked


def test_an_answer_without_a_verdict_is_listed_left_out_and_asked_about_again(context: StageContext, server: MisbehavingServer):
    entry = read_manifest(context.layout).entries(read_split(context, SEED).test)[0]
    spoilt = next(outcome.answer for outcome in read_outcomes(context.layout, entry.key) if outcome.subset == FULL_SUBSET)

    def fails_at_one(exchange: Exchange) -> None:
        is_spoilt = exchange.request.body["model"] == "strict" and spoilt in exchange.request.text
        (status(500, "out of memory") if is_spoilt else lenient_or_strict)(exchange)

    server.otherwise = fails_at_one
    failed = judge(context, SEED).failed
    assert failed
    assert all("strict on question" in line and "out of memory" in line for line in failed)
    rows = {(row.judge, row.system): row for row in read_judgements(context, SEED).rows}
    row = rows["strict", "all"]
    assert row.unjudged >= 1
    assert row.judged + row.unjudged == rows["lenient", "all"].judged
    assert row.accuracy == 0.0

    server.otherwise = lenient_or_strict
    server.requests.clear()
    assert judge(context, SEED).failed == ()
    assert server.requests
    assert all(request.body["model"] == "strict" and spoilt in request.text for request in server.requests)


def test_an_answer_that_the_reader_never_gave_is_not_judged_but_listed(context: StageContext, server: MisbehavingServer):
    """No answer is not a wrong answer: whatever a judge would say of it, nobody failed the question."""
    entry = read_manifest(context.layout).entries(read_split(context, SEED).test)[0]
    path = context.layout.outcomes(entry.key)
    records = list(read_records(path, "mesa sweep"))
    question = records[0]["question_id"]
    for record in records:
        if record["question_id"] == question:
            record |= {"answer": "", "score": None, "error": "reader: HTTP 500: out of memory, 6 times"}
    write_records(path, read_header(path) or {}, records)

    summary = judge(context, SEED)
    assert all(f"question {question!r}: reader: HTTP 500" in line for line in summary.failed)
    assert len(summary.failed) == 3 * 2  # judges and systems
    unread = {(row.judge, row.system): row.unjudged for row in read_judgements(context, SEED).rows}
    assert unread == dict.fromkeys(unread, 1)
    assert not any("(no answer)" in request.text for request in server.requests)


def test_judgements_on_another_policy_are_left_out_of_the_report(context: StageContext):
    judge(context, SEED)
    path = context.layout.judgements(SEED)
    judged = read_judgements(context, SEED)
    write_sealed_json(path, {**judged.to_json(), "manifest_sha256": "another"})
    report(context)
    assert "## Judges" not in (context.layout.report / "report.md").read_text()


def test_a_judge_is_sent_what_its_own_endpoint_takes():
    """A hosted model refuses what vLLM needs to turn thinking off."""
    where = "base_url: 'http://h/v1', key_variable: K"
    judges = f"{{name: hosted, model: h, {where}, chat_template_kwargs: false}}, {{name: other, model: o, {where}}}"
    settings = load_settings(REPOSITORY / "params.yaml", [f"evaluation.judges=[{judges}]"], {}, profile="paper")
    hosted, other = (judge_endpoint(settings, judge) for judge in settings.evaluation.judges)
    assert (hosted.model, hosted.chat_template_kwargs, hosted.json_schema) == ("h", False, True)
    assert (other.model, other.chat_template_kwargs) == ("o", True)
    assert other.max_concurrency == settings.llm.chat.max_concurrency


def test_without_judges_it_says_how_to_name_some(finished: StageContext):
    with pytest.raises(ConfigError, match=r"evaluation\.judges"):
        judge(finished, SEED)


@pytest.mark.parametrize("names", [("majority",), ("reward",), ("a", "a")])
def test_judges_that_the_table_could_not_tell_apart_are_refused(names: tuple[str, ...]):
    judges = ", ".join(f"{{name: {name}, base_url: 'http://h/v1', model: m, key_variable: K}}" for name in names)
    with pytest.raises(ConfigError, match="a name of its own"):
        load_settings(REPOSITORY / "params.yaml", [f"evaluation.judges=[{judges}]"], {})


def test_a_baselines_answers_are_judged_too_and_left_out_once_they_are_others(context: StageContext):
    run_baseline(context, "bm25")
    judge(context, SEED)
    judged = read_judgements(context, SEED)
    assert judged.answered == answered_systems(context)
    outcomes, tested = read_answers(context, "bm25"), read_test(context, SEED).choices
    accuracy = {(row.judge, row.system): row for row in judged.rows}
    assert accuracy["lenient", "bm25"].accuracy == 1.0
    assert accuracy["reward", "bm25"].judged == len(tested)
    assert accuracy["reward", "bm25"].accuracy == pytest.approx(np.mean([outcomes[id].score for id in tested]))

    (shown,) = gather(context).judged
    assert shown == judged
    entry = read_manifest(context.layout).entries(read_split(context, SEED).test)[0]
    context.layout.answers("bm25", entry.key).unlink()
    (shown,) = gather(context).judged
    assert {row.system for row in shown.rows} == {FROZEN_ROW, "all"}
