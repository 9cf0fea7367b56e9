"""All settings together."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from mesa_pipeline.config.baselines import BaselinesSettings
from mesa_pipeline.config.datasets import DatasetsSettings, SplitsSettings
from mesa_pipeline.config.llm import LlmSettings
from mesa_pipeline.config.memory import EvidenceSettings, ReadingSettings, StoresSettings, StructuresSettings
from mesa_pipeline.config.nightly import NightlySettings
from mesa_pipeline.config.overrides import apply_override, parsed, value_at
from mesa_pipeline.config.policies import EvaluationSettings, PoliciesSettings, PreviewsSettings, SearchSettings
from mesa_pipeline.config.section import Fraction, Section
from mesa_pipeline.config.services import ServicesSettings
from mesa_pipeline.errors import ConfigError


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


class ChecksSettings(Section):
    max_unscored: Fraction


class RetrySettings(Section):
    limit: Annotated[int, Field(ge=0)]
    backoff_seconds: Annotated[float, Field(ge=0)]
    max_backoff_seconds: Annotated[float, Field(ge=0)]
    busy_seconds: Annotated[float, Field(gt=0)]
    busy_limit: Annotated[int, Field(ge=0)]


class RunSettings(Section):
    workers: Annotated[int, Field(ge=0)]
    retries: RetrySettings


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
    baselines: BaselinesSettings
    previews: PreviewsSettings
    search: SearchSettings
    ablations: tuple[Variation, ...]
    profile: str
    profiles: tuple[Variation, ...]
    checks: ChecksSettings
    tracking: TrackingSettings
    services: ServicesSettings
    nightly: NightlySettings
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
        changed = [
            key for key, value in (parsed(override, self.profile) for override in made) if value_at(settings, key) != value
        ]
        return f"{self.profile}, but for {', '.join(map('.'.join, changed))}" if changed else self.profile

    def ablated(self, ablation: Variation) -> "Settings":
        """These settings with an ablation's changes.

        Raises:
            ConfigError: It changes a setting that is not there, or to a value out of range.
        """
        return validated(self.model_dump(mode="json", by_alias=True), ablation.set, f"ablation {ablation.name!r}")


def validated(values: dict[str, Any], overrides: Sequence[str], origin: str) -> Settings:
    """The settings that plain values are, once changed by overrides; ``origin`` says in messages where they come from.

    Raises:
        ConfigError: A key is unknown, missing or out of range; names all of them.
    """
    for override in overrides:
        apply_override(values, override, "--set")
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
