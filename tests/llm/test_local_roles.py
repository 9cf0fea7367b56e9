"""Every role of a language model, played once by a real one. It is a small one, so what is asserted is the protocol."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import LEDGER
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.evaluation.judge import LlmJudge
from mesa_pipeline.llm import Message, OpenChat
from mesa_pipeline.llm.ledger import Ledger, Spending
from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.policies.zero_shot import ZeroShotPolicy
from mesa_pipeline.reading.llm import LlmReader
from mesa_pipeline.search.proposers import open_proposer
from mesa_pipeline.stages.models import chat_opener, structures_of, verdict_schema
from mesa_pipeline.subsets import ALL_SUBSETS
from mesa_pipeline.types import ComposedEvidence, Question, Section, Step, Trajectory
from tests.search.proposers.requests import request

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = "SmolLM2-135M-Instruct"
SMALL = (
    "llm.chat.context_tokens=1024",
    "llm.chat.max_concurrency=1",
    "llm.local.prompt_cache_mb=0",
    "llm.roles.summarize.max_tokens=8",
    "llm.roles.extract.max_tokens=8",
    "llm.roles.check.max_tokens=8",
    "llm.roles.answer.max_tokens=8",
    "llm.roles.propose.max_tokens=8",
)
STEPS = (Step(0, "open the drawer", "You see a key."), Step(1, "take the key", "You hold the key."))
TRAJECTORY = Trajectory("t", "Find the key.", STEPS)
QUESTION = Question(id="q", text="Where was the key?", answer="in the drawer")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def local() -> Settings:
    pytest.importorskip("xllamacpp", reason="the extra local-llm is not installed")
    return load_settings(REPOSITORY / "params.yaml", SMALL, {}, profile="local-llm")


@pytest.fixture
def chat(local: Settings, tmp_path: Path) -> OpenChat:
    return chat_opener(local, tmp_path)


@pytest.fixture
def spent(tmp_path: Path) -> Callable[[], dict[str, Spending]]:
    """What was spent so far, by phase; all of it on the one model."""

    def spent() -> dict[str, Spending]:
        spending = Ledger(tmp_path / LEDGER).spending()
        assert {line.model for line in spending} == {MODEL}
        assert all(line.prompt_tokens > 0 and line.completion_tokens > 0 for line in spending)
        return {line.phase: line for line in spending}

    return spent


def test_it_builds_summaries(local: Settings, tmp_path: Path, spent: Callable[[], dict[str, Spending]]):
    structure = structures_of(local, tmp_path)["S"]
    memory = structure.build(TRAJECTORY)
    assert not structure.retrieve(memory, QUESTION.text).is_empty
    assert spent()["build"].attempts == 1


def test_it_extracts_entities_and_relations(local: Settings, tmp_path: Path, spent: Callable[[], dict[str, Spending]]):
    structure = structures_of(local, tmp_path)["G"]
    structure.retrieve(structure.build(TRAJECTORY), QUESTION.text)
    assert spent()["build"].attempts >= 2
    assert spent()["build"].cached_tokens > 0  # the second request goes on from the first


def test_it_checks_whether_evidence_suffices(local: Settings, tmp_path: Path, spent: Callable[[], dict[str, Spending]]):
    structure = structures_of(local, tmp_path)["T"]
    structure.retrieve(structure.build(TRAJECTORY), QUESTION.text)
    assert spent()["retrieve"].attempts >= 1


def test_it_answers_and_judges(chat: OpenChat, local: Settings, spent: Callable[[], dict[str, Spending]]):
    composed = ComposedEvidence((Section("T", "Step 0: open the drawer. You see a key.", 12),))
    answer = LlmReader(chat("answer")).answer(QUESTION.text, TRAJECTORY.task, composed)
    assert answer.error is None
    judge = LlmJudge(chat("judge", verdict_schema(local)), local.evaluation.judge_asks)
    assert judge.judge(QUESTION, TRAJECTORY.task, answer.text).score in (0.0, 1.0)
    assert {"answer", "judge"} <= spent().keys()


def test_it_chooses_structures(chat: OpenChat, spent: Callable[[], dict[str, Spending]]):
    policy = ZeroShotPolicy(chat("select"))
    assert policy.select({}, PolicyInput(QUESTION.text, {}, len(STEPS), {})) in ALL_SUBSETS
    assert spent()["select"].attempts == 1


def test_it_proposes_policies(chat: OpenChat, local: Settings, spent: Callable[[], dict[str, Spending]]):
    proposer = open_proposer(local.search, local.policies.sandbox, chat)
    proposal = proposer.propose(request())
    assert MODEL in proposer.name
    assert not proposer.trusted
    assert [said["role"] for said in proposal.exchange] == ["system", "user", "assistant"]
    assert proposal.spent["calls"] == spent()["propose"].attempts == 1


def test_a_prefix_read_before_is_not_read_again(chat: OpenChat):
    start = "The drawer holds a key. " * 20
    first, second = (chat("answer").complete([Message("user", start + end)]) for end in ("Where is it?", "What is there?"))
    assert second.cached_tokens > first.prompt_tokens // 2


def test_a_conversation_longer_than_its_context_is_shortened(chat: OpenChat, spent: Callable[[], dict[str, Spending]]):
    long = " ".join(f"x{k}z" for k in range(600))
    assert chat("select").complete([Message("user", long)]).prompt_tokens <= 1024
