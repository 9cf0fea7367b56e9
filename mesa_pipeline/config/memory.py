"""The five structures, the stores under them, and the reader."""

from typing import Annotated, Literal

from pydantic import Field

from mesa_pipeline.config.section import Fraction, Positive, Section


class EvidenceSettings(Section):
    max_chars_per_step: Annotated[int, Field(ge=100)]


class SummarySettings(Section):
    builder: Literal["extractive", "llm"]
    window_chars: Positive
    max_chars_per_segment: Annotated[int, Field(ge=200)]
    max_chars_per_step: Positive


class TemporalSettings(Section):
    checker: Literal["none", "llm"]
    max_requested: Positive
    top_k: Positive
    max_steps: Positive
    max_listed: Positive
    max_listed_chars: Annotated[int, Field(ge=100)]


class GraphSettings(Section):
    builder: Literal["rules", "llm"]
    passage_chars: Positive
    passage_overlap_chars: Annotated[int, Field(ge=0)]
    triples_per_step: Positive
    proximity_weight: Annotated[float, Field(ge=0)]
    seed_radius: Annotated[int, Field(ge=0)]
    hops: Annotated[int, Field(ge=0, le=4)]
    focal_relations: Positive
    neighbours_per_relation: Annotated[int, Field(ge=0)]
    hub_relations: Positive
    tokenizer: str


class VectorSettings(Section):
    top_k: Positive


class RawSettings(Section):
    windows_per_trajectory: Positive
    min_window: Positive
    max_window: Positive
    overlap: Annotated[float, Field(ge=0.0, lt=1.0)]
    top_k: Positive


class StructuresSettings(Section):
    summary: SummarySettings
    temporal: TemporalSettings
    graph: GraphSettings
    vector: VectorSettings
    raw: RawSettings


class Bm25Settings(Section):
    variant: Literal["okapi", "lucene"]
    k1: Annotated[float, Field(ge=0)]
    b: Fraction
    epsilon: Fraction
    tokenizer: str


class HnswSettings(Section):
    m: Annotated[int, Field(ge=2, le=100)]
    ef_construction: Annotated[int, Field(ge=4, le=1000)]
    ef_search: Annotated[int, Field(ge=1, le=1000)]


class PgvectorSettings(Section):
    url_variable: str
    exact_up_to: Annotated[int, Field(ge=0)]
    hnsw: HnswSettings


class ElasticsearchSettings(Section):
    url: str
    key_variable: str
    index: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    timeout_seconds: Annotated[float, Field(gt=0)]
    max_attempts: Positive
    backoff_seconds: Annotated[float, Field(ge=0)]
    max_backoff_seconds: Annotated[float, Field(ge=0)]


class StoresSettings(Section):
    bm25: Bm25Settings
    vectors: Literal["files", "pgvector"]
    texts: Literal["process", "elasticsearch"]
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    pgvector: PgvectorSettings
    elasticsearch: ElasticsearchSettings


class ExtractiveSettings(Section):
    min_words: Annotated[int, Field(ge=0)]
    max_words: Positive
    max_units: Positive
    max_spoken_units: Positive
    repeat_worth: Fraction
    quote_cost: Annotated[float, Field(ge=0)]
    citation_worth: Fraction


class ReadingSettings(Section):
    reader: Literal["extractive", "llm"]
    extractive: ExtractiveSettings
