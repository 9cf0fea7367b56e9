"""How answers are scored, what policies may see and use, and how they are searched."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from mesa_pipeline.config.section import Fraction, Positive, PositiveFloat, Section

LabelKeys = Annotated[tuple[Literal["domain", "task_type", "qa_type"], ...], Field(min_length=1)]
TABLE_OF_JUDGES = ("reward", "majority")
"""What stands in the table of judges beside them."""


class JudgeSettings(Section):
    """A judge of its own: what differs from ``llm.chat``; ``None`` where it does not."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    base_url: str
    model: str
    key_variable: str
    chat_template_kwargs: bool | None = None
    json_schema: bool | None = None


class EvaluationSettings(Section):
    reward: Literal["token_f1", "llm_judge"]
    judges: tuple[JudgeSettings, ...]
    judge_asks: Positive
    judge_constrained: bool
    empty_score: Fraction
    bootstrap_samples: Positive
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    bootstrap_seed: int
    budgets: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]

    @field_validator("judges")
    @classmethod
    def _told_apart(cls, judges: tuple[JudgeSettings, ...]) -> tuple[JudgeSettings, ...]:
        names = [*(judge.name for judge in judges), *TABLE_OF_JUDGES]
        if len(set(names)) < len(names):
            raise ValueError(f"each judge needs a name of its own, other than {' and '.join(TABLE_OF_JUDGES)}")
        return judges


class SandboxSettings(Section):
    fit_seconds: PositiveFloat
    select_seconds: PositiveFloat
    memory_mb: Annotated[int, Field(ge=256)]
    reply_mb: Positive
    source_kb: Positive
    state_kb: Positive
    allow_weak: bool


class PoliciesSettings(Section):
    shrinkage: PositiveFloat
    lookup_keys: tuple[LabelKeys, ...]
    route_keys: LabelKeys
    zero_shot: bool
    sandbox: SandboxSettings


class PreviewsSettings(Section):
    max_chars: Positive
    max_scores: Positive
    max_steps: Positive


class UcbSettings(Section):
    beta: Annotated[float, Field(ge=0)]
    scale: Literal["unit", "range"]
    reward: Literal["mean", "max"]


class LlmProposerSettings(Section):
    max_prompt_chars: Annotated[int, Field(ge=20_000)]
    max_reply_chars: Annotated[int, Field(ge=1_000)]
    max_asks: Positive
    sources: Annotated[int, Field(ge=0)]
    rejections: Annotated[int, Field(ge=0)]


class SearchSettings(Section):
    lambda_: Annotated[float, Field(ge=0, alias="lambda")]
    iterations: Annotated[int, Field(ge=0)]
    slots: Annotated[tuple[Literal["exploit", "explore", "repair"], ...], Field(min_length=1)]
    proposer: Literal["template", "llm"]
    directions: Annotated[tuple[str, ...], Field(min_length=1)] | None
    labels: bool
    max_structures: Annotated[int, Field(ge=1, le=5)]
    feedback_split: Literal["train", "val"]
    count_duplicates: bool
    count_off_direction: bool
    max_rejected: Positive
    back_off: Annotated[int, Field(ge=0)]
    ucb: UcbSettings
    select: Literal["argmax", "lcb", "one-se-cheapest", "crossfit"]
    lcb_z: Annotated[float, Field(ge=0)]
    refit: bool
    failure_cards: Positive
    llm: LlmProposerSettings

    @field_validator("slots")
    @classmethod
    def _distinct(cls, slots: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(slots)) < len(slots):
            raise ValueError("a slot stands twice; each has one candidate an iteration")
        return slots
