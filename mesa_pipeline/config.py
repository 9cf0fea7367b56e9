"""Settings: ``params.yaml`` overlaid with ``MESA_*`` environment variables and explicit overrides.

Loaded in ``cli`` and ``defs/resources`` only; everything below receives what it needs as arguments. Settings are frozen and
reject unknown keys, so a misspelt one is an error and not a silent default.
"""

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from mesa_pipeline.errors import ConfigError

ENV_PREFIX = "MESA_"
PARAMS_FILE = "params.yaml"
ENDPOINT = "endpoint"
"""As ``llm.embedder``: the model of ``llm.embeddings``."""
LOCAL = "local://"
"""As ``base_url``: the process itself serves the model."""
Positive = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0.0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
LabelKeys = Annotated[tuple[Literal["domain", "task_type", "qa_type"], ...], Field(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


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


class EndpointSettings(Section):
    base_url: Annotated[str, Field(pattern=r"^(https?://[^\s@?#]+|local://)$")]  # no place for a secret
    model: str
    key_variable: str
    context_tokens: Annotated[int, Field(ge=256)]
    max_concurrency: Positive
    timeout_seconds: PositiveFloat
    max_attempts: Positive
    backoff_seconds: Annotated[float, Field(ge=0)]
    max_backoff_seconds: Annotated[float, Field(ge=0)]


class ChatSettings(EndpointSettings):
    thinking: bool
    chat_template_kwargs: bool
    json_schema: bool


class EmbeddingsSettings(EndpointSettings):
    batch_size: Positive


class LocalSettings(Section):
    threads: Positive
    prompt_cache_mb: Annotated[int, Field(ge=0)]


class RoleSettings(Section):
    max_tokens: Positive
    temperature: Annotated[float, Field(ge=0.0, le=2.0)]


class RolesSettings(Section):
    summarize: RoleSettings
    extract: RoleSettings
    check: RoleSettings
    answer: RoleSettings
    judge: RoleSettings
    select: RoleSettings
    propose: RoleSettings


class LlmSettings(Section):
    tokenizer: str
    embedder: str
    embedder_threads: Positive
    embedder_batch_size: Positive
    chat: ChatSettings
    embeddings: EmbeddingsSettings
    local: LocalSettings
    roles: RolesSettings

    @property
    def embedder_name(self) -> str:
        """The embedding model, wherever it runs."""
        return self.embeddings.model if self.embedder == ENDPOINT else self.embedder

    @model_validator(mode="after")
    def _replies_leave_room(self) -> "LlmSettings":
        for role, settings in self.roles:
            if settings.max_tokens >= self.chat.context_tokens:
                raise ValueError(
                    f"roles.{role}.max_tokens ({settings.max_tokens}) leaves no room for a conversation "
                    f"in chat.context_tokens ({self.chat.context_tokens})"
                )
        return self


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


class StoresSettings(Section):
    bm25: Bm25Settings


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


TABLE_OF_JUDGES = ("reward", "majority")
"""What stands in the table of judges beside them."""


class JudgeSettings(Section):
    """A judge of its own: what differs from ``llm.chat``."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    base_url: str
    model: str
    key_variable: str


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
    shrinkage: Annotated[float, Field(ge=0)]
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


class Variation(Section):
    """Settings to change, each written as ``section.key=value``, under a name."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]*$")]
    set: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name as one path component."""
        return self.name.replace(" ", "-").lower()


class TrackingSettings(Section):
    enabled: bool
    uri: str | None


class RunSettings(Section):
    workers: Annotated[int, Field(ge=0)]


class Settings(Section):
    datasets: DatasetsSettings
    splits: SplitsSettings
    llm: LlmSettings
    evidence: EvidenceSettings
    structures: StructuresSettings
    stores: StoresSettings
    reading: ReadingSettings
    evaluation: EvaluationSettings
    policies: PoliciesSettings
    previews: PreviewsSettings
    search: SearchSettings
    ablations: tuple[Variation, ...]
    profile: str
    profiles: tuple[Variation, ...]
    tracking: TrackingSettings
    run: RunSettings

    @field_validator("ablations")
    @classmethod
    def _distinct(cls, ablations: tuple[Variation, ...]) -> tuple[Variation, ...]:
        if len({ablation.key for ablation in ablations}) < len(ablations):
            raise ValueError("two ablations share a folder; their names must differ in more than case, spaces and hyphens")
        return ablations

    @property
    def profile_label(self) -> str:
        """What results are labelled with: the profile's name, and which of its settings are not as the profile has them."""
        settings = self.model_dump(mode="json", by_alias=True)
        made = (override for profile in self.profiles if profile.name == self.profile for override in profile.set)
        changed = [key for key, value in (_parsed(override, self.profile) for override in made) if _at(settings, key) != value]
        return f"{self.profile}, but for {', '.join(map('.'.join, changed))}" if changed else self.profile

    def ablated(self, ablation: Variation) -> "Settings":
        """These settings with an ablation's changes.

        Raises:
            ConfigError: It changes a setting that is not there, or to a value out of range.
        """
        return _with_overrides(self.model_dump(mode="json", by_alias=True), ablation.set, f"ablation {ablation.name!r}")


def secret(variable: str) -> str | None:
    """The secret in an environment variable, ``None`` where there is none. It goes to whoever sends it, and is kept nowhere."""
    return os.environ.get(variable) or None


def default_params_path() -> Path:
    """``params.yaml`` of the current directory, else the one shipped with the package.

    Raises:
        ConfigError: Neither is there.
    """
    package = Path(__file__).parent
    for candidate in (Path.cwd() / PARAMS_FILE, package.parent / PARAMS_FILE, package / PARAMS_FILE):
        if candidate.is_file():
            return candidate
    raise ConfigError(f"no {PARAMS_FILE} in {Path.cwd()} nor beside the package; name one with --params")


def load_settings(
    path: Path | None = None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> Settings:
    """Read the settings: the file, changed by a profile, then by the environment, then by overrides.

    Args:
        path: The YAML file; by default ``default_params_path()``.
        overrides: ``section.key=value`` strings, the last word on any key; values are YAML.
        environment: Variables to read ``MESA_SECTION__KEY`` from; the process's own by default. A variable without a double
            underscore is none of ours to read here.
        profile: Name of one of the file's profiles; by default the one that the file names.

    Raises:
        ConfigError: The file cannot be read, or a key is unknown, missing or out of range; names the key and its origin.
    """
    path = path or default_params_path()
    values = _read_yaml(path)
    _apply_profile(values, profile, path)
    environment = os.environ if environment is None else environment
    for name in sorted(environment):
        if name.startswith(ENV_PREFIX) and "__" in name:
            keys = name.removeprefix(ENV_PREFIX).lower().split("__")
            _assign(values, keys, _parse_value(environment[name], name), name)
    return _with_overrides(values, overrides, f"settings ({path}, then MESA_* variables, then --set)")


def _apply_profile(values: dict[str, Any], wanted: str | None, path: Path) -> None:
    """Make the changes of the profile wanted, or of the one the file names, and note its name."""
    name = wanted if wanted is not None else values.get("profile")
    profiles = {profile.get("name"): profile for profile in values.get("profiles", ()) if isinstance(profile, dict)}
    if name not in profiles:
        raise ConfigError(f"no profile {name!r} in {path}; known are {', '.join(map(str, profiles))}")
    values["profile"] = name
    for override in profiles[name].get("set", ()):
        _override(values, str(override), f"profile {name!r}")


def _override(values: dict[str, Any], override: str, origin: str) -> None:
    keys, value = _parsed(override, origin)
    if keys == ["profile"]:
        raise ConfigError(f"{origin} {override}: a profile is more than its name; choose one with --profile")
    _assign(values, keys, value, f"{origin} {override}")


def _parsed(override: str, origin: str) -> tuple[list[str], Any]:
    """Keys and value of ``section.key=value``."""
    key, separator, value = override.partition("=")
    if not separator:
        raise ConfigError(f"{origin} {override!r}: write it as section.key=value")
    return key.strip().split("."), _parse_value(value, override)


def _at(values: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return reduce(lambda section, key: section[key], keys, values)


def _with_overrides(values: dict[str, Any], overrides: Sequence[str], origin: str) -> Settings:
    for override in overrides:
        _override(values, override, "--set")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {_lowered(problem['msg'])}" for problem in error.errors()
        )
        raise ConfigError(f"{origin}: {problems}") from error


def _lowered(message: str) -> str:
    """The message as the rest of a sentence; what it quotes keeps its case."""
    return message[:1].lower() + message[1:]


def _parse_value(text: str, origin: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin}: {text!r} is not a YAML value") from error


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read settings {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold sections of settings, found {type(values).__name__}")
    return values


def _assign(values: dict[str, Any], keys: Sequence[str], value: Any, origin: str) -> None:
    section = values
    for position, key in enumerate(keys):
        if key not in section:
            known = ", ".join(sorted(map(str, section)))
            raise ConfigError(f"{origin}: unknown setting {'.'.join(keys[: position + 1])!r}; known here: {known}")
        if position == len(keys) - 1:
            section[key] = value
        elif isinstance(section[key], dict):
            section = section[key]
        else:
            raise ConfigError(f"{origin}: {'.'.join(keys[: position + 1])!r} is a value, not a section")
