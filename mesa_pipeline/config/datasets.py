"""Where data comes from, and how it is split."""

from typing import Annotated

from pydantic import Field, field_validator

from mesa_pipeline.config.section import Positive, Section


class AmaBenchSettings(Section):
    repo: str
    revision: str
    file: str
    sha256: str


class LocomoSettings(Section):
    include_adversarial: bool


class SyntheticSettings(Section):
    seed: int
    episodes: Positive
    steps: Annotated[int, Field(ge=10, le=100_000)]
    questions: Positive


class DatasetsSettings(Section):
    ama_bench: AmaBenchSettings
    locomo: LocomoSettings
    synthetic: SyntheticSettings


class SplitsSettings(Section):
    ratio: tuple[Positive, Positive, Positive]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("a seed stands twice; each split is drawn once")
        return seeds
