"""The sweep as the server sees it: a question's prompts one after the other in prefix order, questions side by side."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mesa_pipeline.llm import Completion, Message
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.llm import LlmReader
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading
from mesa_pipeline.stages.storage import read_evidence, read_manifest, read_questions, read_task
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.subsets import ALL_SUBSETS, STRUCTURE_NAMES, prefix_order
from tests.llm.misbehaving_server import Exchange, MisbehavingServer
from tests.stages.endpoint_model import CACHED_TOKENS, PROMPT_TOKENS, context_of, prepared, reply, role_of

READ_BY_MODEL = ("reading.reader=llm", "evaluation.reward=llm_judge")


@dataclass
class Overheard:
    """A model that says nothing and remembers what it was told."""

    name: str = "overheard"
    told: list[str] = field(default_factory=list)

    def complete(self, messages: Sequence[Message], seed: int = 0) -> Completion:
        self.told.append(messages[-1].content)
        return Completion("", 0, 0)


class Watching:
    """Replies as ever, and notes the questions whose answers are being written at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: Counter[str] = Counter()
        self.most_of_one = 0
        self.most_questions = 0

    def __call__(self, exchange: Exchange) -> None:
        if role_of(exchange.request) != "answer":
            reply(exchange)
            return
        question = question_of(exchange.request.text)
        with self._lock:
            self._now[question] += 1
            self.most_of_one = max(self.most_of_one, self._now[question])
            self.most_questions = max(self.most_questions, sum(count > 0 for count in self._now.values()))
        exchange.closing.wait(0.02)
        with self._lock:
            self._now[question] -= 1
        reply(exchange)


def question_of(prompt: str) -> str:
    return prompt.rpartition("# Question\n")[2].partition("\n\n# Answer")[0]


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(otherwise=reply) as server:
        yield server


def wanted_prompts(context: StageContext) -> dict[str, list[str]]:
    """The prompts of every question in prefix order, each distinct one once."""
    counter = open_reading(context.settings, context.layout).counter
    found = {}
    for entry in read_manifest(context.layout).episodes:
        evidence = {code: read_evidence(context.layout, code, name, entry.key) for code, name in STRUCTURE_NAMES.items()}
        for question in read_questions(context.layout, entry.key):
            composer = Composer({code: of[question.id] for code, of in evidence.items()}, counter)
            model = Overheard()
            for subset in prefix_order():
                LlmReader(model).answer(question.text, read_task(context.layout, entry.key), composer.compose(subset))
            found[question_of(model.told[0])] = list(dict.fromkeys(model.told))
    return found


def test_prompts_of_a_question_come_in_prefix_order_one_by_one_and_questions_side_by_side(
    server: MisbehavingServer, tmp_path: Path
):
    context = prepared(context_of(tmp_path, server.base_url, *READ_BY_MODEL))
    server.otherwise = watching = Watching()
    server.requests.clear()
    summary = sweep(context)
    assert summary.failed == ()
    asked: dict[str, list[str]] = defaultdict(list)
    for request in server.requests:
        if role_of(request) == "answer":
            asked[question_of(request.text)].append(request.text)
    assert asked == wanted_prompts(context)
    assert len(asked) == summary.made / len(ALL_SUBSETS)
    assert watching.most_of_one == 1
    assert 1 < watching.most_questions <= context.settings.llm.chat.max_concurrency

    answers = sum(map(len, asked.values()))
    fresh = answers * (PROMPT_TOKENS - CACHED_TOKENS)
    said = f"{answers * PROMPT_TOKENS:,} in all requests, {fresh:,} (40.0%) not from its cache"
    assert summary.facts["server_prompt_tokens"] == said
    assert "new to a prefix cache" in str(summary.facts["evidence_tokens"])


def test_an_extractive_sweep_speaks_of_no_prefill(server: MisbehavingServer, tmp_path: Path):
    assert sweep(prepared(context_of(tmp_path, server.base_url, "datasets.synthetic.episodes=3"))).facts.keys() == {
        "subsets",
        "questions",
    }
