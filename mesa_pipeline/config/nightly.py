"""When the champion is re-evaluated, and what a promotion takes."""

from typing import Annotated

from pydantic import Field

from mesa_pipeline.config.section import PositiveFloat, Section


class NightlySettings(Section):
    cron: Annotated[str, Field(pattern=r"^\S+( \S+){4}$")]
    timezone: str
    automatic: bool
    seed: int
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    min_episodes: Annotated[int, Field(ge=2)]
    growth: Annotated[float, Field(ge=0.0)]
    report_fresh_hours: PositiveFloat
