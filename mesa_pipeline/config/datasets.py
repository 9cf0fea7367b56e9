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


OwnName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z0-9][a-z0-9_]*$")]
"""Of a data set of one's own: the source that reads it, a dot, and a name."""


class DatasetsSettings(Section):
    own: tuple[OwnName, ...]
    ama_bench: AmaBenchSettings
    locomo: LocomoSettings
    synthetic: SyntheticSettings

    @field_validator("own")
    @classmethod
    def _named_once(cls, own: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(own)) < len(own):
            raise ValueError("a data set stands twice")
        return own


class SplitsSettings(Section):
    ratio: tuple[Positive, Positive, Positive]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)]

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("a seed stands twice; each split is drawn once")
        return seeds
