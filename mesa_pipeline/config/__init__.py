"""Settings: ``params.yaml`` overlaid with ``MESA_*`` environment variables and explicit overrides.

Loaded in ``cli`` and ``defs/resources`` only; everything below receives what it needs as arguments. Settings are frozen and
reject unknown keys, so a misspelt one is an error and not a silent default.
"""

from mesa_pipeline.config.baselines import (
    AmaAgentSettings,
    AmemSettings,
    BaselinesSettings,
    Bm25BaselineSettings,
    ChatChoice,
    CodeSearchSettings,
    EmbedderChoice,
    EmemSettings,
    FlatDenseSettings,
    HindsightSettings,
    HipporagSettings,
    LongContextSettings,
    Mem0Settings,
    MemgptSettings,
    MemoragSettings,
)
from mesa_pipeline.config.datasets import AmaBenchSettings, DatasetsSettings, SyntheticSettings
from mesa_pipeline.config.llm import ENDPOINT, LOCAL, ChatSettings, EmbeddingsSettings, EndpointSettings, LocalSettings
from mesa_pipeline.config.loading import load_settings, resolved, secret
from mesa_pipeline.config.memory import (
    Bm25Settings,
    ElasticsearchSettings,
    ExtractiveSettings,
    GraphSettings,
    PgvectorSettings,
    RawSettings,
    StoresSettings,
    TemporalSettings,
)
from mesa_pipeline.config.nightly import NightlySettings
from mesa_pipeline.config.policies import (
    EvaluationSettings,
    JudgeSettings,
    LlmProposerSettings,
    PoliciesSettings,
    PreviewsSettings,
    SandboxSettings,
    SearchSettings,
    UcbSettings,
)
from mesa_pipeline.config.services import RestartSettings, ServicesSettings
from mesa_pipeline.config.settings import Settings, TrackingSettings, Variation

__all__ = [
    "ENDPOINT",
    "LOCAL",
    "AmaAgentSettings",
    "AmaBenchSettings",
    "AmemSettings",
    "BaselinesSettings",
    "Bm25BaselineSettings",
    "Bm25Settings",
    "ChatChoice",
    "ChatSettings",
    "CodeSearchSettings",
    "DatasetsSettings",
    "ElasticsearchSettings",
    "EmbedderChoice",
    "EmbeddingsSettings",
    "EmemSettings",
    "EndpointSettings",
    "EvaluationSettings",
    "ExtractiveSettings",
    "FlatDenseSettings",
    "GraphSettings",
    "HindsightSettings",
    "HipporagSettings",
    "JudgeSettings",
    "LlmProposerSettings",
    "LocalSettings",
    "LongContextSettings",
    "Mem0Settings",
    "MemgptSettings",
    "MemoragSettings",
    "NightlySettings",
    "PgvectorSettings",
    "PoliciesSettings",
    "PreviewsSettings",
    "RawSettings",
    "RestartSettings",
    "SandboxSettings",
    "SearchSettings",
    "ServicesSettings",
    "Settings",
    "StoresSettings",
    "SyntheticSettings",
    "TemporalSettings",
    "TrackingSettings",
    "UcbSettings",
    "Variation",
    "load_settings",
    "resolved",
    "secret",
]
