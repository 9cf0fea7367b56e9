"""A model that plays every role, as a function of the request alone, and the settings that have it asked."""

import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.stages.build import build
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.split import split
from mesa_pipeline.subsets import STRUCTURE_CODES
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import Exchange, Logged, chat, usage, well

MAX_TOKENS = {"summarize": 901, "extract": 902, "check": 903, "answer": 904, "judge": 8, "select": 905, "propose": 906}
"""By which the roles' requests are told apart."""
RECALL_TOKENS = 907
"""Of a baseline that asks in a loop; its setting is the baseline's own."""
ROLES = {**{tokens: role for role, tokens in MAX_TOKENS.items()}, RECALL_TOKENS: "recall"}
PROMPT_TOKENS, CACHED_TOKENS, REPLY_TOKENS = 100, 60, 10
POLICY = """META = {{"direction": "lexical-rules", "hypothesis": "A word decides.", "parents": []}}


def select(state, q):
    return [{first!r}] if {word!r} in q["question"].lower() else [{second!r}, "V"]
"""


def role_of(request: Logged) -> str:
    """In which role the model was asked, or ``embed``."""
    return "embed" if request.path.endswith("/embeddings") else ROLES[request.body["max_tokens"]]


def body_of(request: Logged) -> str:
    """All that was asked, for telling requests apart."""
    return json.dumps([request.path, request.body], sort_keys=True)


def reply_of(request: Logged) -> str:
    """What the model says; other things to other requests."""
    digest = hashlib.sha256(body_of(request).encode()).hexdigest()
    number, word, role = int(digest, 16), digest[:6], role_of(request)
    if role == "extract":
        asks_for_triples = "triples" in str(request.body["response_format"])
        triples = [[f"lamp {word}", "is in", "hall"], ["hall", "holds", "key"]]
        return json.dumps({"triples": triples} if asks_for_triples else {"entities": ["hall", "key", f"lamp {word}"]})
    if role == "propose":
        asked = ("how", "which", "step", "why", "what", "the")[number % 6]
        policy = POLICY.format(word=asked, first="STG"[number // 6 % 3], second="STGR"[number // 18 % 4])
        return f"```python\n{policy}```"
    if role == "recall":
        is_first = len(request.body["messages"]) == 1
        return json.dumps({"action": "search", "query": word} if is_first else {"action": "answer", "answer": word})
    plain = {
        "summarize": f"SUMMARY:\nStep 1: noted {word}",
        "judge": "no" if number % 3 else "yes",
        "select": "STGVR"[number % 5],
        "check": "SUFFICIENT",
    }
    return plain.get(role, f"It is in room {word}.")


def reply(exchange: Exchange) -> None:
    """The act of an endpoint that serves this model and an embedder."""
    if role_of(exchange.request) == "embed":
        well(exchange)
    else:
        message = {"role": "assistant", "content": reply_of(exchange.request)}
        exchange.send(chat(message, usage=usage(PROMPT_TOKENS, REPLY_TOKENS, CACHED_TOKENS)))


class RepliesThenSilence:
    """Replies to so many requests for text, and to none after them; embeddings are always given.

    Attributes:
        silent: Set as soon as a request waits for a reply that will not come.
    """

    def __init__(self, replies: int) -> None:
        self.silent = threading.Event()
        self._left = replies
        self._lock = threading.Lock()

    def __call__(self, exchange: Exchange) -> None:
        if role_of(exchange.request) != "embed":
            with self._lock:
                self._left -= 1
                is_over = self._left < 0
            if is_over:
                self.silent.set()
                exchange.closing.wait()
                exchange.cut()
                return
        reply(exchange)


def overrides(base_url: str, *more: str) -> list[str]:
    """Settings of a small synthetic run that asks the endpoint for embeddings alone, changed by ``more``."""
    endpoint = {"base_url": base_url, "backoff_seconds": 0, "max_backoff_seconds": 0, "max_concurrency": 4}
    return [
        *(f"llm.{part}.{name}={value}" for part in ("chat", "embeddings") for name, value in endpoint.items()),
        *(f"llm.roles.{role}.max_tokens={tokens}" for role, tokens in MAX_TOKENS.items()),
        "llm.embedder=endpoint",
        "datasets.synthetic.episodes=5",
        "datasets.synthetic.steps=10",
        "datasets.synthetic.questions=2",
        "splits.seeds=[0]",
        "evaluation.bootstrap_samples=100",
        "search.iterations=2",
        "tracking.enabled=false",
        "run.workers=1",
        *more,
    ]


def context_of(workspace: Path, base_url: str, *more: str) -> StageContext:
    settings = load_settings(REPOSITORY / "params.yaml", overrides(base_url, *more), {})
    return StageContext(Layout(workspace, "synthetic"), settings)


def prepared(context: StageContext) -> StageContext:
    """Everything before the sweep."""
    ingest(context)
    for stage in (build, retrieve):
        for code in STRUCTURE_CODES:
            failed = stage(context, code).failed
            assert failed == (), failed
    for seed in context.settings.splits.seeds:
        split(context, seed)
    return context


def contents(folder: Path) -> Mapping[str, Any]:
    """Every file under a folder by its path, with what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
