"""Executable policies: Python source with ``select(state, q)`` and, if it learns, ``fit(rows, ctx)`` (paper, Section 4.2).

The source is data. It is run by the sandbox alone, and the very same worker serves it that scored it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, Policy, PolicyInput, PolicyKind, policy_inputs
from mesa_pipeline.policies.sandbox import HashSeed, Sandbox
from mesa_pipeline.policies.sandbox.gate import PolicyCode, require_valid
from mesa_pipeline.types import State

PREVIEWS = "previews"


@dataclass(frozen=True)
class Encoded:
    """Questions or training rows as JSON arrays, encoded once for many policies.

    A source that never says ``previews`` is shown none, in scoring as in asking, where none are computed for it.
    """

    whole: bytes
    without_previews: bytes

    def shown_to(self, policy: "ExecutablePolicy") -> bytes:
        return self.whole if policy.reads_previews else self.without_previews


@dataclass(frozen=True)
class ExecutablePolicy(Policy):
    """A policy given as source.

    Attributes:
        title: Name shown in tables, unique among the policies compared.
        source: The code; it has passed the gate.
        sandbox: Where it runs.
    """

    title: str
    source: str
    sandbox: Sandbox = field(compare=False, repr=False)

    @property
    def code(self) -> PolicyCode:
        """What the gate found in the source.

        Raises:
            GateError: It is not an acceptable policy.
        """
        return gated_code(self.source)

    @property
    def name(self) -> str:
        return self.title

    @property
    def kind(self) -> PolicyKind:
        return "executable"

    @property
    def reads_previews(self) -> bool:
        return PREVIEWS in self.source

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], sandbox: Sandbox | None = None) -> Self:
        if sandbox is None:
            raise PolicyError("this policy is code; open it with the sandbox it is to run in")
        title, source = spec["title"], spec["source"]
        if not isinstance(title, str) or not isinstance(source, str):
            raise PolicyError("title and source of a policy that is code are texts")
        gated_code(source)
        return cls(title, source, sandbox)

    def spec(self) -> dict[str, Any]:
        return {"type": "executable", "title": self.title, "source": self.source}

    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        """What the source's ``fit`` learns; an empty object where it has none.

        Raises:
            ArtifactError: Some training cells were never swept, or none has a score.
            SandboxFailure: The code failed, took too long or too much, or returned no JSON.
        """
        return self.fit_encoded(encode_rows(train, context), context)

    def fit_encoded(self, rows: Encoded, context: FitContext, hash_seed: HashSeed = 0) -> State:
        """``fit`` on rows that ``encode_rows`` made, under one of two hash seeds."""
        if not self.code.has_fit:
            return {}
        return self.sandbox.fit(self.source, rows.shown_to(self), context_json(context), hash_seed)

    def select(self, state: State, question: PolicyInput) -> int:
        return self.select_many(state, [question])[0]

    def select_many(self, state: State, questions: Sequence[PolicyInput]) -> list[int]:
        """One mask per question.

        Raises:
            PolicyError: It failed on a question; says on how many, and how on the first.
            SandboxFailure: It took too long or too much.
        """
        return self.select_encoded(state, encode_questions(questions))

    def select_encoded(self, state: State, questions: Encoded, hash_seed: HashSeed = 0) -> list[int]:
        """``select_many`` on questions that ``encode_questions`` made, under one of two hash seeds."""
        replies = self.sandbox.select(self.source, state, questions.shown_to(self), hash_seed)
        failed = [reply.error for reply in replies if reply.mask is None]
        if failed:
            raise PolicyError(f"{self.title} failed on {len(failed)} of {len(replies)} questions; first: {failed[0]}")
        return [reply.mask for reply in replies if reply.mask is not None]

    def explain(self, state: State, question: PolicyInput, chosen: int) -> str:
        return f"{self.title}: {self.code.meta['hypothesis']} -> {subsets.label(chosen)}"


@lru_cache(maxsize=16)
def gated_code(source: str) -> PolicyCode:
    """What the gate finds in a source; looked at once for the several steps a candidate goes through.

    Raises:
        GateError: It is not an acceptable policy.
    """
    return require_valid(source)


def context_json(context: FitContext) -> dict[str, Any]:
    """The ``ctx`` that a source's ``fit`` is given; ``subsets[mask - 1]`` lists the structures of ``mask``."""
    return {
        "structures": list(subsets.STRUCTURE_CODES),
        "subsets": [list(subsets.decode(mask)) for mask in subsets.ALL_SUBSETS],
        "lambda": context.lambda_,
        "shrinkage": context.shrinkage,
        "max_structures": context.max_structures,
        "seed": context.seed,
    }


def encode_questions(questions: Sequence[PolicyInput]) -> Encoded:
    """One ``q`` for each question."""
    return _encode([question.to_json() for question in questions])


def encode_rows(train: OutcomeMatrix, context: FitContext) -> Encoded:
    """Training rows: ``q`` with ``y`` (31 scores, null where unscored), ``tok`` (31 token counts) and ``group`` (one number
    an episode). Rows are ordered by question id, so the order of the table never matters.

    Raises:
        ArtifactError: Some cells were never swept, or none has a score.
    """
    if np.isnan(train.tokens).any():
        raise ArtifactError("some training outcomes are missing; make them with `mesa sweep`")
    if train.unscored == train.scores.size:
        raise ArtifactError("no training outcome has a score; see what failed with `mesa sweep`, then run it again")
    groups = {episode: number for number, episode in enumerate(sorted(set(train.episode_ids)))}
    inputs = policy_inputs(train, context.labels)
    rows = []
    for k in sorted(range(len(train)), key=lambda k: train.questions[k].id):
        scores = [None if np.isnan(score) else float(score) for score in train.scores[k]]
        outcome = {"y": scores, "tok": [int(tokens) for tokens in train.tokens[k]]}
        rows.append({**inputs[k].to_json(), **outcome, "group": groups[train.questions[k].episode_id]})
    return _encode(rows)


def _encode(values: list[dict[str, Any]]) -> Encoded:
    bare = [{**value, PREVIEWS: {}} for value in values]
    return Encoded(dump_json(values).encode("ascii"), dump_json(bare).encode("ascii"))
