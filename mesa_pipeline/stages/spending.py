"""What language models behind endpoints have cost so far, and what reading all subsets costs a server's prefill."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mesa_pipeline.artifacts import LEDGER
from mesa_pipeline.evaluation.prefill import prefill
from mesa_pipeline.llm.ledger import Ledger, Spending
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import EpisodeEntry, read_outcomes
from mesa_pipeline.subsets import ALL_SUBSETS


def read_spending(workspace: Path) -> tuple[Spending, ...]:
    """Sums by phase and model over all that was done in a workspace; empty where no endpoint was asked.

    Raises:
        ArtifactError: The ledger cannot be read.
    """
    path = workspace / LEDGER
    return Ledger(path).spending() if path.exists() else ()


def prefill_facts(context: StageContext, entries: Iterable[EpisodeEntry]) -> dict[str, object]:
    """The prefill of sweeping some episodes, for people: evidence tokens by our count, then prompt tokens by the server's.

    The server's are of every answer so far. Empty where no endpoint reads.

    Raises:
        ArtifactError: Outcomes or ledger cannot be read.
    """
    settings = context.settings
    if settings.reading.reader != "llm":
        return {}
    facts: dict[str, object] = {}
    evidence = prefill(_evidence_tokens(context, entries))
    if evidence.naive:
        facts["evidence_tokens"] = (
            f"{evidence.naive:,} in all prompts, {evidence.shared:,} ({evidence.share:.1%}) new to a prefix cache"
        )
    for line in read_spending(context.layout.workspace):
        if (line.phase, line.model) == ("answer", settings.llm.chat.model) and line.prompt_tokens:
            fresh = line.prompt_tokens - line.cached_tokens
            facts["server_prompt_tokens"] = (
                f"{line.prompt_tokens:,} in all requests, {fresh:,} ({fresh / line.prompt_tokens:.1%}) not from its cache"
            )
    return facts


def _evidence_tokens(context: StageContext, entries: Iterable[EpisodeEntry]) -> np.ndarray:
    """Evidence tokens of every question under every subset, shape ``(n, 31)``; NaN where there is no outcome."""
    found: dict[str, np.ndarray] = {}
    for entry in entries:
        for outcome in read_outcomes(context.layout, entry.key):
            row = found.setdefault(outcome.question_id, np.full(len(ALL_SUBSETS), np.nan))
            row[outcome.subset - 1] = outcome.tokens
    return np.array(list(found.values())).reshape(-1, len(ALL_SUBSETS))
