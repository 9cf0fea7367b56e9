"""Opening what the settings name: structures, embedder, reader, reward and the language models behind them.

Everything opened is kept for equal settings, so that a model is loaded, and an endpoint's turns are counted, once a process.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from pathlib import Path
from threading import RLock
from typing import Any, Literal, ParamSpec, TypeVar

from mesa_pipeline.artifacts import LEDGER, REPLIES, VECTORS, Layout, RunningServices
from mesa_pipeline.artifacts.services import STORES
from mesa_pipeline.config import (
    ENDPOINT,
    ChatSettings,
    EndpointSettings,
    JudgeSettings,
    LocalSettings,
    Settings,
    StoresSettings,
    secret,
)
from mesa_pipeline.errors import ConfigError, MissingDependency
from mesa_pipeline.evaluation.judge import VERDICT_SCHEMA, LlmJudge
from mesa_pipeline.evaluation.rewards import Reward, TokenF1
from mesa_pipeline.evaluation.sweep import Reading
from mesa_pipeline.llm import ChatModel, Embedder, OpenChat, Role
from mesa_pipeline.llm.ledger import Phase
from mesa_pipeline.llm.metering import metered_chat, metered_embedder
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.reading import Reader
from mesa_pipeline.reading.extractive import ExtractiveReader
from mesa_pipeline.reading.llm import LlmReader
from mesa_pipeline.stores import Stores, TextStore, VectorStore
from mesa_pipeline.structures import open_structures
from mesa_pipeline.structures.base import MemoryStructure, StructureContext

P = ParamSpec("P")
R = TypeVar("R")
OPENING = RLock()
"""Held while anything is opened. One for all: what is opened opens what it needs, in this thread."""
PHASES: Mapping[Role, Phase] = {
    "summarize": "build",
    "extract": "build",
    "check": "retrieve",
    "answer": "answer",
    "judge": "judge",
    "select": "select",
    "propose": "propose",
    "remember": "build",
    "recall": "retrieve",
}


def kept(function: Callable[P, R]) -> Callable[P, R]:
    """``functools.cache`` that calls the function once, also where several threads ask at the same time."""
    remembered = cache(function)

    @wraps(function)
    def opened(*arguments: P.args, **named: P.kwargs) -> R:
        with OPENING:
            return remembered(*arguments, **named)  # type: ignore[arg-type]  # that they are hashable is for the caller to see to

    return opened


@kept
def structures_of(settings: Settings, workspace: Path) -> dict[str, MemoryStructure[Any]]:
    """The five structures by code; what language models reply is kept in the workspace."""
    models = embedder_opener(settings, workspace), chat_opener(settings, workspace)
    return open_structures(StructureContext(settings, *models, stores_of(settings, workspace)))


@kept
def stores_of(settings: Settings, workspace: Path) -> Stores:
    """The servers that the settings have memories searched in; nothing is connected before the first use."""
    stores = settings.stores
    return Stores(
        vectors=_vector_store(stores, workspace) if stores.vectors == "pgvector" else None,
        texts=_text_store(stores) if stores.texts == "elasticsearch" else None,
    )


def postgres_url(stores: StoresSettings, workspace: Path) -> str:
    """Where PostgreSQL is: as the environment says, else the one that runs for the workspace.

    Raises:
        MissingDependency: Neither is there.
    """
    variable = stores.pgvector.url_variable
    running = RunningServices.of(workspace)
    url = secret(variable) or (running.databases.get(STORES) if running else None)
    if not url:
        raise MissingDependency(f"no PostgreSQL: start one with `mesa up`, or set {variable} to the address of yours")
    return url


def structure_of(settings: Settings, workspace: Path, code: str) -> MemoryStructure[Any]:
    """The structure of a code such as ``S``.

    Raises:
        ConfigError: There is none; lists those there are.
    """
    known = structures_of(settings, workspace)
    if code not in known:
        names = ", ".join(f"{structure.code} ({structure.name})" for structure in known.values())
        raise ConfigError(f"no structure {code!r}; known are {names}")
    return known[code]


@kept
def embedder_opener(settings: Settings, workspace: Path) -> Callable[[], Embedder]:
    """Opens the embedder on the first call and hands out the same one afterwards."""

    @kept
    def open_embedder() -> Embedder:
        llm = settings.llm
        if llm.embedder != ENDPOINT:
            return _local_embedder(llm.embedder, llm.embedder_batch_size, llm.embedder_threads)
        from mesa_pipeline.llm.cache import VectorCache
        from mesa_pipeline.llm.endpoint_embedder import EndpointEmbedder
        from mesa_pipeline.llm.ledger import Ledger

        cache_, ledger = VectorCache(workspace / VECTORS), Ledger(workspace / LEDGER)
        key, locate = secret(llm.embeddings.key_variable), _locate(llm.local)
        return EndpointEmbedder(llm.embeddings, cache_, ledger, token_counter(settings), key, locate=locate)

    return metered_embedder(open_embedder, token_counter(settings))


@kept
def _local_embedder(name: str, batch_size: int, threads: int) -> Embedder:
    from mesa_pipeline.llm.local import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(name, batch_size, threads)


@kept
def chat_opener(settings: Settings, workspace: Path) -> OpenChat:
    """Opens the language model of a role behind the endpoint of the settings; nothing is connected before the first call."""

    def open_chat(role: Role, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None) -> ChatModel:
        return _chat(settings, settings.llm.chat, workspace, role, schema, max_tokens)

    return metered_chat(open_chat)


@kept
def open_reading(settings: Settings, layout: Layout) -> Reading:
    """Reader, token counter and reward named in the settings; token F1 is the dataset's own function."""
    chat = chat_opener(settings, layout.workspace)
    reader: Reader = (
        LlmReader(chat("answer")) if settings.reading.reader == "llm" else ExtractiveReader(settings.reading.extractive)
    )
    reward: Reward = (
        LlmJudge(chat("judge", verdict_schema(settings)), settings.evaluation.judge_asks)
        if settings.evaluation.reward == "llm_judge"
        else TokenF1(layout.dataset)
    )
    return Reading(reader, token_counter(settings), reward)


def roles_played(settings: Settings) -> tuple[Role, ...]:
    """The roles in which the settings ask the language model of ``llm.chat``."""
    structures = settings.structures
    played: dict[Role, bool] = {
        "summarize": structures.summary.builder == "llm",
        "extract": structures.graph.builder == "llm",
        "check": structures.temporal.checker == "llm",
        "answer": settings.reading.reader == "llm",
        "judge": settings.evaluation.reward == "llm_judge",
        "select": settings.policies.zero_shot,
        "propose": settings.search.proposer == "llm",
    }
    return tuple(role for role, plays in played.items() if plays)


def waits_for_endpoint(settings: Settings, stage: Literal["build", "retrieve", "sweep"], code: str = "") -> bool:
    """Whether a stage, for one structure, mostly waits for an endpoint: then threads do it, and not processes."""
    structures, embeds = settings.structures, settings.llm.embedder == ENDPOINT
    waiting = {
        "build S": structures.summary.builder == "llm",
        "build G": structures.graph.builder == "llm",
        "build V": embeds,
        "retrieve V": embeds,
        "retrieve T": structures.temporal.checker == "llm",
        "sweep": settings.reading.reader == "llm" or settings.evaluation.reward == "llm_judge",
    }
    return waiting.get(f"{stage} {code}".strip(), False)


def open_judges(settings: Settings, workspace: Path) -> dict[str, LlmJudge]:
    """The further judges of the settings, by name."""
    asks, schema = settings.evaluation.judge_asks, verdict_schema(settings)
    return {
        judge.name: LlmJudge(_chat(settings, judge_endpoint(settings, judge), workspace, "judge", schema), asks)
        for judge in settings.evaluation.judges
    }


def verdict_schema(settings: Settings) -> Mapping[str, Any] | None:
    """What a judge may reply; ``None`` for anything."""
    return VERDICT_SCHEMA if settings.evaluation.judge_constrained else None


def judge_endpoint(settings: Settings, judge: JudgeSettings) -> ChatSettings:
    """Where a further judge is: all that it does not say of itself is as in ``llm.chat``."""
    return settings.llm.chat.model_copy(update=judge.model_dump(exclude={"name"}, exclude_none=True))


def _vector_store(stores: StoresSettings, workspace: Path) -> VectorStore:
    from mesa_pipeline.stores.pgvector import PgvectorStore

    return PgvectorStore(stores.pgvector, stores.namespace, partial(postgres_url, stores, workspace))


def _text_store(stores: StoresSettings) -> TextStore:
    from mesa_pipeline.stores.elasticsearch import ElasticsearchStore

    return ElasticsearchStore(stores.elasticsearch, stores.bm25, stores.namespace, secret(stores.elasticsearch.key_variable))


def _chat(
    settings: Settings,
    chat: ChatSettings,
    workspace: Path,
    role: Role,
    schema: Mapping[str, Any] | None,
    max_tokens: int | None = None,
) -> ChatModel:
    from mesa_pipeline.llm.openai_compatible import OpenAIChat, Sampling

    reply = getattr(settings.llm.roles, role)
    sampling = Sampling(max_tokens or reply.max_tokens, reply.temperature, schema)
    return OpenAIChat(_endpoint(chat, settings.llm.local, workspace), sampling, PHASES[role], token_counter(settings))


@kept
def _endpoint(chat: ChatSettings, local: LocalSettings, workspace: Path) -> Any:
    from mesa_pipeline.llm.cache import ReplyCache
    from mesa_pipeline.llm.endpoint import Endpoint
    from mesa_pipeline.llm.ledger import Ledger

    replies, ledger = ReplyCache(workspace / REPLIES), Ledger(workspace / LEDGER)
    return Endpoint(chat, replies, ledger, secret(chat.key_variable), locate=_locate(local))


def _locate(local: LocalSettings) -> Callable[[EndpointSettings], str]:
    from mesa_pipeline.llm.llama_server import url_of

    return partial(url_of, local=local)


@kept
def token_counter(settings: Settings) -> QwenTokenCounter:
    """Counts tokens as the answer model does."""
    return QwenTokenCounter(settings.llm.tokenizer)
