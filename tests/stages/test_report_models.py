"""What a report says of language models after a run in which an endpoint plays every role."""

import re
from collections.abc import Iterator

import pytest

from mesa_pipeline.artifacts import LEDGER
from mesa_pipeline.evaluation.prefill import prefill
from mesa_pipeline.llm.ledger import Ledger
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.report import gather, report
from mesa_pipeline.stages.sweep import sweep
from tests.llm.misbehaving_server import MisbehavingServer
from tests.pipeline import conclude
from tests.stages.endpoint_model import CACHED_TOKENS, PROMPT_TOKENS, context_of, prepared, reply, role_of

EVERY_ROLE = (
    "structures.summary.builder=llm",
    "structures.graph.builder=llm",
    "structures.temporal.checker=llm",
    "reading.reader=llm",
    "evaluation.reward=llm_judge",
    "policies.zero_shot=true",
    "search.proposer=llm",
    "search.iterations=1",
    "llm.chat.model=player",
    "llm.embeddings.model=embedder",
)
OFFLINE_ROLES = {"summary builder", "triple extractor", "sufficiency checker", "zero-shot selector", "language model"}


@pytest.fixture(scope="module")
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(otherwise=reply) as server:
        yield server


@pytest.fixture(scope="module")
def played(server: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory) -> StageContext:
    """A whole run by the model; do not change it."""
    context = context_of(tmp_path_factory.mktemp("played"), server.base_url, *EVERY_ROLE)
    sandbox = open_sandbox(context.settings.policies.sandbox)
    if sandbox.tier != "kernel":
        pytest.skip(f"this system cannot confine a model's code: {sandbox.confinement}")
    prepared(context)
    sweep(context)
    conclude(context)
    return context


def test_every_role_s_model_is_named_and_no_other(played: StageContext, server: MisbehavingServer):
    said = gather(played).provenance
    named = {
        "summary builder": "player (temperature 0, 901 of",
        "triple extractor": "player (temperature 0, 902 of",
        "sufficiency checker": "player (temperature 0, 903 of",
        "reader": "llm:player (temperature 0, 904 of",
        "reward": "llm_judge:player (temperature 0, 8 of",
        "zero-shot selector": "player (temperature 0, 905 of",
        "proposer": "llm:player (temperature 0.7, 906 of",
        "embedder": "embedder",
    }
    assert {role for role, model in named.items() if not said[role].startswith(model)} == set()
    assert {role_of(request) for request in server.requests} == {
        *("summarize", "extract", "check", "answer", "judge", "select", "propose", "embed"),
    }


def test_an_offline_run_names_no_language_model(finished: StageContext):
    said = gather(finished).provenance
    assert said.keys() & OFFLINE_ROLES == set()
    assert said["reader"].startswith("extractive")
    assert said["proposer"].startswith("template")
    assert gather(finished).spending == ()


def test_spending_and_prefill_are_reported_as_the_server_counts(played: StageContext, server: MisbehavingServer):
    inputs = gather(played)
    asked = {line.phase: line for line in inputs.spending}
    assert asked.keys() == {"build", "retrieve", "answer", "judge", "select", "propose", "embed"}
    assert sum(line.attempts for line in inputs.spending) == len(server.requests)
    answers = sum(role_of(request) == "answer" for request in server.requests)
    assert (asked["answer"].prompt_tokens, asked["answer"].cached_tokens) == (PROMPT_TOKENS * answers, CACHED_TOKENS * answers)
    document = (played.layout.report / "report.md").read_text()
    assert "## Language models" in document
    assert f"{answers * (PROMPT_TOKENS - CACHED_TOKENS):,} of {answers * PROMPT_TOKENS:,} (40.0%)" in document
    assert f"{prefill(inputs.matrix.tokens).naive:,}" in document
    assert re.search(r"^\| judge \| player \|", document, re.MULTILINE)


def test_a_report_is_kept_until_the_ledger_changes(played: StageContext):
    assert report(played).kept == 1
    Ledger(played.layout.workspace / LEDGER).record_replays("answer", "player")
    assert report(played).made == 1
    assert report(played).kept == 1


def test_a_later_model_in_the_settings_is_not_named_for_what_an_earlier_one_made(
    played: StageContext, server: MisbehavingServer
):
    later = ("llm.roles.select.max_tokens=777", "llm.roles.propose.max_tokens=777")
    said = gather(context_of(played.layout.workspace, server.base_url, *EVERY_ROLE, *later)).provenance
    assert "905 of" in said["zero-shot selector"]
    assert "906 of" in said["proposer"]
