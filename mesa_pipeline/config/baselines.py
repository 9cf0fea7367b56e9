"""The systems that MESA is compared with."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from mesa_pipeline.config.llm import ENDPOINT
from mesa_pipeline.config.memory import Bm25Settings
from mesa_pipeline.config.section import Fraction, Positive, PositiveFloat, Section


class EndpointChoice(Section):
    """A model of its own behind an endpoint; what is ``null`` is as in ``llm``."""

    model: str | None
    base_url: str | None

    @property
    def changes(self) -> dict[str, str]:
        """What is not as in ``llm``."""
        return {name: value for name, value in (("model", self.model), ("base_url", self.base_url)) if value is not None}


class ChatChoice(EndpointChoice):
    """A language model of its own; what is ``null`` is as in ``llm.chat``."""


class EmbedderChoice(EndpointChoice):
    """An embedding model of its own: ``embedder`` as in ``llm``, or the model and address of one behind an endpoint.

    What is ``null`` is as in ``llm`` and ``llm.embeddings``.
    """

    embedder: str | None

    @model_validator(mode="after")
    def _one_place(self) -> "EmbedderChoice":
        if self.changes and self.embedder not in (None, ENDPOINT):
            raise ValueError(f"model and base_url are of an embedder behind an endpoint, and {self.embedder!r} is none")
        return self


class LongContextSettings(Section):
    window_tokens: Positive
    reserved_tokens: Annotated[int, Field(ge=0)]
    break_tokens: Annotated[int, Field(ge=0)]


class Bm25BaselineSettings(Section):
    chunk_chars: Positive
    ranking: Bm25Settings
    top_k: Positive


class FlatDenseSettings(Section):
    max_tokens: Positive
    top_k: Positive
    dialogue_top_k: Positive
    dialogue_instruction: str


class MemgptSettings(Section):
    passage_chars: Positive
    top_k: Positive
    shown_chars: Positive
    max_searches: Positive
    max_tokens: Positive
    dialogue_max_tokens: Positive


class MemoragSettings(Section):
    memory: ChatChoice
    embeddings: EmbedderChoice
    memory_tokens: Positive
    chunk_tokens: Positive
    top_k: Positive
    min_words: Positive
    max_clues: Positive
    max_tokens: Positive


class EmemWeights(Section):
    summary: Fraction
    chunks: Fraction
    bm25: Fraction


class EmemSettings(Section):
    block_tokens: Positive
    overlap: Annotated[float, Field(ge=0, lt=1)]
    summary_words: Positive
    chunk_chars: Positive
    chunk_overlap_chars: Annotated[int, Field(ge=0)]
    ranking: Bm25Settings
    weights: EmemWeights
    chunks_routed: Positive
    blocks_routed: Positive
    max_tokens: Positive

    @model_validator(mode="after")
    def _chunks_advance(self) -> "EmemSettings":
        if self.chunk_overlap_chars >= self.chunk_chars:
            raise ValueError("chunk_overlap_chars must be less than chunk_chars")
        return self


class AmemSettings(Section):
    embeddings: EmbedderChoice
    neighbours: Positive
    note_chars: Positive
    evidence_chars: Positive
    embed_again_after: Positive
    top_k: Positive
    max_tokens: Positive


class HipporagSettings(Section):
    embeddings: EmbedderChoice
    synonym_similarity: Annotated[float, Field(ge=-1, le=1)]
    synonyms: Positive
    facts: Positive
    entity_seeds: Positive
    passage_weight: Annotated[float, Field(ge=0)]
    damping: Annotated[float, Field(gt=0, lt=1)]
    candidates: Positive
    dialogue_candidates: Positive
    top_k: Positive
    evidence_chars: Positive
    max_tokens: Positive


class Mem0Settings(Section):
    chunk_steps: Positive
    chunk_chars: Positive
    dialogue_turns: Positive
    max_tokens: Positive
    embedded_tokens: Positive
    top_k: Positive
    seconds: Annotated[float, Field(gt=0)]


class RerankerChoice(Section):
    """A cross-encoder behind a server that speaks the protocol of Text Embeddings Inference; without one both are ``null``."""

    model: str | None
    base_url: str | None

    @model_validator(mode="after")
    def _named_and_found(self) -> "RerankerChoice":
        if (self.model is None) != (self.base_url is None):
            raise ValueError("a reranker needs both model, which results are keyed by, and base_url, where it is")
        return self


class HindsightSettings(Section):
    document_chars: Positive
    history_chars: Positive
    chunk_chars: Positive
    recall_tokens: Positive
    reranker: RerankerChoice
    constrained: bool
    max_tokens: Positive
    seconds: Annotated[float, Field(gt=0)]

    @model_validator(mode="after")
    def _replies_are_longer_than_chunks(self) -> "HindsightSettings":
        if self.max_tokens <= self.chunk_chars:
            raise ValueError("max_tokens must be more than chunk_chars: the package refuses anything else")
        return self


class CodeSearchSettings(Section):
    seconds: PositiveFloat
    memory_mb: Annotated[int, Field(ge=256)]
    reply_chars: Positive
    source_kb: Positive


class AmaAgentSettings(Section):
    chunk_chars: Positive
    state_tokens: Positive
    state_share: Fraction
    state_head: Fraction
    top_k: Positive
    max_named: Positive
    max_turns: Positive
    shown_chars: Positive
    max_requested: Positive
    rounds: Positive
    max_tokens: Positive
    tries: Positive
    code_tokens: Positive
    example_turns: Positive
    example_chars: Positive
    feedback_chars: Positive
    evidence_tokens: Positive
    search: CodeSearchSettings


class BaselinesSettings(Section):
    assets: tuple[str, ...]
    answers: Literal["common", "native"]
    long_context: LongContextSettings
    bm25: Bm25BaselineSettings
    flat_dense: FlatDenseSettings
    memgpt: MemgptSettings
    memorag: MemoragSettings
    e_mem: EmemSettings
    a_mem: AmemSettings
    hipporag2: HipporagSettings
    mem0: Mem0Settings
    hindsight: HindsightSettings
    ama_agent: AmaAgentSettings
