"""Valid, Fit and Evaluate: what becomes of one candidate (paper, Algorithm 1, lines 6 to 8).

Valid means: it passes the gate, holds no training or validation text, fits within its limits, chooses for every question
including odd ones, reads no more structures than allowed, chooses the same in another order under another hash seed, and
chooses something that has a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import ArtifactError, GateError, PolicyError
from mesa_pipeline.policies.executable import ExecutablePolicy, gated_code
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.policies.sandbox.gate import PolicyCode
from mesa_pipeline.policies.sandbox.leakage import memorised_state, memorised_text
from mesa_pipeline.search.data import SearchData, Worth
from mesa_pipeline.search.store import Choices


@dataclass(frozen=True)
class Trial:
    """A valid candidate with what it learnt, what it chose, and what that is worth."""

    code: PolicyCode
    state: Any
    choices: Choices
    worth: Worth


@dataclass(frozen=True)
class Invalid:
    """Why a candidate is not valid, in a line."""

    reason: str


def gated(source: str, data: SearchData) -> PolicyCode | Invalid:
    """The first look, before anything runs: the gate, and the lint for memorised questions."""
    try:
        code = gated_code(source)
    except GateError as error:
        return Invalid(f"gate: {error}")
    if found := memorised_text(source, _texts(data)):
        return Invalid(f"memorised: {found[0].message}")
    return code


def tried(code: PolicyCode, title: str, data: SearchData, sandbox: Sandbox) -> Trial | Invalid:
    """Fit a gated candidate and let it choose; never raises for what the candidate does."""
    policy = ExecutablePolicy(title, code.source, sandbox)
    try:
        state = policy.fit_encoded(data.rows, data.context)
        if dump_json(policy.fit_encoded(data.rows, data.context, hash_seed=1)) != dump_json(state):
            return Invalid("not deterministic: fit learns something else under another hash seed; sort sets before use")
        if found := memorised_state(state, _texts(data)):
            return Invalid(f"memorised: {found[0].message}")
        masks = np.array(policy.select_encoded(state, data.questions), dtype=np.int64)
        again = np.array(policy.select_encoded(state, data.shuffled, hash_seed=1), dtype=np.int64)
        if changed := int((masks[data.order] != again).sum()):
            return Invalid(
                f"not deterministic: {changed} of {len(masks)} choices changed with the order of questions or the hash seed; "
                "sort sets before use and keep nothing between calls"
            )
        largest = max(subsets.size(int(mask)) for mask in masks)
        if largest > data.context.max_structures:
            return Invalid(f"reads {largest} structures; ctx['max_structures'] allows {data.context.max_structures}")
        choices = data.choices(masks)
        return Trial(code, state, choices, data.worth(title, choices))
    except (PolicyError, ArtifactError) as error:
        return Invalid(str(error))


def _texts(data: SearchData) -> Sequence[str]:
    return [question.text for matrix in (data.train, data.validation) for question in matrix.questions]
