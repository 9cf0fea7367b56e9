"""Test: the frozen policy on the held-out episodes, once. Only here, after the freeze, are their outcomes opened."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from mesa_pipeline.artifacts import exclusive, fingerprint, read_json, read_json_as, write_sealed_json
from mesa_pipeline.errors import ArtifactError, ModelError, PolicyError
from mesa_pipeline.evaluation.held_out import (
    FROZEN_ROW,
    Receipt,
    SplitOutcomes,
    TestResult,
    held_out_test,
    outcomes_sha256,
)
from mesa_pipeline.policies import FittedPolicy
from mesa_pipeline.policies.zero_shot import ZeroShotPolicy
from mesa_pipeline.stages.comparison_tracking import tracked_test
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import chat_opener
from mesa_pipeline.stages.optimize import read_frozen, read_result
from mesa_pipeline.stages.search_tracking import tracked_search
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.tracking import Tracker
from mesa_pipeline.types import Summary

RESULT_VERSION = 2
"""Raised when a test stores something else for the same policy and outcomes."""


def test(context: StageContext, seed: int, tracker: Tracker) -> Summary:
    """Test the frozen policy of a seed, and every baseline beside it.

    The same frozen policy is tested on the same outcomes once: another call returns what the first one found. When only how it
    is reported changed (the bootstrap, the baselines), the figures are made anew under the first receipt.

    Raises:
        ArtifactError: No policy is frozen, or some outcomes are missing; says which command makes them.
        PolicyError: The frozen policy is a language model's code, and the sandbox here is weak.
    """
    started = time.perf_counter()
    frozen = read_frozen(context, seed)
    frozen.require_strong()
    split = read_split(context, seed)
    train, validation, held_out = (read_table(context, ids) for ids in (split.train, split.val, split.test))
    known = _receipts(context, seed)
    receipt = _receipt(known, frozen.manifest_sha256, outcomes_sha256(held_out.matrix))
    further = _further_policies(context)
    key = _test_fingerprint(context, receipt, further)
    kept = _stored_fingerprint(context, seed) == key
    if not kept:
        parts = SplitOutcomes(train.matrix, validation.matrix, held_out.matrix)
        searched = read_result(context, seed)
        result = _tested(context, frozen.fitted, parts, receipt, seed, further)
        with exclusive(context.layout):
            result = replace(result, earlier=tuple(other for other in known if other != receipt))
            write_sealed_json(context.layout.test(seed), {"fingerprint": key, **result.to_json()})
            search = tracked_search(context, seed, searched.fingerprint, searched.proposer)
            tracker.test(search, tracked_test(result, held_out.matrix))
    facts = _facts(read_test(context, seed))
    if held_out.unswept:
        facts["questions_without_outcome"] = len(held_out.unswept)
    ablation = f" ({context.layout.ablation})" if context.layout.ablation else ""
    return Summary(f"test seed {seed}{ablation}", int(not kept), int(kept), time.perf_counter() - started, facts=facts)


def is_tested(context: StageContext, seed: int) -> bool:
    """Whether the stored test is of the policy now frozen, with the settings as they are."""
    try:
        receipt, frozen = read_test(context, seed).receipt, read_frozen(context, seed)
        is_of_frozen = receipt.manifest_sha256 == frozen.manifest_sha256
        key = _test_fingerprint(context, receipt, _further_policies(context))
        return is_of_frozen and _stored_fingerprint(context, seed) == key
    except (ArtifactError, PolicyError):
        return False


def _tested(
    context: StageContext,
    frozen: FittedPolicy,
    parts: SplitOutcomes,
    receipt: Receipt,
    seed: int,
    further: Sequence[ZeroShotPolicy],
) -> TestResult:
    try:
        result = held_out_test(frozen, parts, context.dataset, seed, receipt, context.settings, further)
    except ModelError as error:
        raise ModelError(
            f"no test of seed {seed}, as the language model's own choice is not known for every question: {error}; "
            f"run `mesa test --seed {seed}` again: it asks for the missing ones alone"
        ) from error
    return replace(result, asked={policy.name: policy.model.name for policy in further})


def read_test(context: StageContext, seed: int) -> TestResult:
    """What the test of a seed found.

    Raises:
        ArtifactError: There has been none, or another version made it.
    """
    return read_json_as(TestResult.from_json, context.layout.test(seed), f"mesa test --seed {seed}")


def _receipts(context: StageContext, seed: int) -> tuple[Receipt, ...]:
    """Of every test of this split seed so far."""
    try:
        stored = read_test(context, seed)
    except ArtifactError:
        return ()
    return (*stored.earlier, stored.receipt)


def _receipt(known: Sequence[Receipt], manifest: str, outcomes: str) -> Receipt:
    """The first receipt for this policy on these outcomes, or a new one."""
    new = Receipt(manifest, outcomes, datetime.now(UTC).isoformat(timespec="seconds"))
    return next((receipt for receipt in known if receipt.matches(manifest, outcomes)), new)


def _further_policies(context: StageContext) -> list[ZeroShotPolicy]:
    """What is tested beside the baselines that need no model."""
    settings = context.settings
    if not settings.policies.zero_shot:
        return []
    model = chat_opener(settings, context.layout.workspace)("select")
    return [ZeroShotPolicy(model, settings.llm.chat.max_concurrency)]


def _test_fingerprint(context: StageContext, receipt: Receipt, further: Sequence[ZeroShotPolicy]) -> str:
    settings = context.settings
    sections = [settings.evaluation.model_dump(), settings.search.model_dump(), settings.policies.model_dump()]
    specs = [policy.spec() for policy in further]
    return fingerprint("test", RESULT_VERSION, receipt.manifest_sha256, receipt.outcomes_sha256, sections, specs)


def _stored_fingerprint(context: StageContext, seed: int) -> str | None:
    try:
        return read_json(context.layout.test(seed), "mesa test").get("fingerprint")
    except ArtifactError:
        return None


def _facts(result: TestResult) -> dict[str, object]:
    frozen, everything = result.row(FROZEN_ROW), result.row("all")
    facts: dict[str, object] = {
        "policy": result.frozen,
        "score": f"{100 * frozen.evaluation.score:.2f} (all: {100 * everything.evaluation.score:.2f})",
        "tokens": f"{frozen.evaluation.tokens:,.0f} (all: {everything.evaluation.tokens:,.0f})",
    }
    return facts | ({"other_tests_of_this_seed": len(result.earlier)} if result.earlier else {})
