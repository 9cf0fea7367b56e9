"""What the report says of language models, gathered from their ledger, judgements and the artifacts made with them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.evaluation.panel import JudgedSeed
from mesa_pipeline.llm import Role
from mesa_pipeline.reports.search_findings import SearchFinding
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.judge import read_judgements
from mesa_pipeline.stages.models import chat_opener, roles_played

MAKERS: dict[Role, str] = {
    "summarize": "summary builder",
    "extract": "triple extractor",
    "check": "sufficiency checker",
}
"""Roles whose work the outcomes' keys vouch for: what the settings name is what made them."""
logger = logging.getLogger(__name__)


def judged_seeds(
    context: StageContext, tests: Iterable[TestResult], answered: Mapping[str, str] = MappingProxyType({})
) -> tuple[JudgedSeed, ...]:
    """The judgements on the tests as they are, all by the same judges; others are left out with a warning.

    Args:
        context: Where they lie.
        tests: The tests as they are.
        answered: Fingerprints of the baselines' answers as they are; verdicts on other answers of theirs are left out.
    """
    found: list[JudgedSeed] = []
    for test in tests:
        try:
            judged = read_judgements(context, test.seed)
        except ArtifactError as error:
            logger.info("the judges of seed %d are left out of the report: %s", test.seed, error)
            continue
        if not test.receipt.matches(judged.manifest_sha256, judged.outcomes_sha256) or (
            found and judged.judges != found[0].judges
        ):
            logger.warning("the judgements of seed %d are outdated; run `mesa judge --seed %d`", test.seed, test.seed)
            continue
        found.append(_without_outdated(judged, answered))
    return tuple(found)


def _without_outdated(judged: JudgedSeed, answered: Mapping[str, str]) -> JudgedSeed:
    outdated = sorted(code for code, key in judged.answered.items() if answered.get(code) != key)
    if outdated:
        logger.warning(
            "what judges of seed %d said of %s is outdated; run `mesa judge --seed %d`",
            judged.seed,
            ", ".join(outdated),
            judged.seed,
        )
    rows = tuple(row for row in judged.rows if row.system not in outdated)
    return replace(judged, rows=rows, leads=tuple(lead for lead in judged.leads if lead.system not in outdated))


def makers(context: StageContext) -> dict[str, str]:
    """The language models that made memories and evidence, by what they did; those roles alone that one plays."""
    chat = chat_opener(context.settings, context.layout.workspace)
    return {MAKERS[role]: chat(role).name for role in roles_played(context.settings) if role in MAKERS}


def deciders(tests: Sequence[TestResult], searches: Sequence[SearchFinding]) -> dict[str, str]:
    """What wrote the policies and what chose without learning, as search and test noted it when they ran."""
    proposers = sorted({search.proposer for search in searches})
    selectors = sorted({model for test in tests for model in test.asked.values()})
    said = {"proposer": "; ".join(proposers), "zero-shot selector": "; ".join(selectors)}
    return {role: names for role, names in said.items() if names}
