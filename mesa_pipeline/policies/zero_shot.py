"""A language model chooses, without having learnt anything (paper, Table 3, "LLM zero-shot")."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from mesa_pipeline import subsets
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.llm import ChatModel, Message
from mesa_pipeline.llm.concurrency import map_concurrently
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, Policy, PolicyInput, PolicyKind
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.types import State

PROMPT = Path(__file__).parent / "prompts" / "zero_shot.md"
LETTER = re.compile(r"(?<![A-Za-z])[STGVR](?![A-Za-z])")
UNKNOWN = "not given"


@dataclass(frozen=True)
class ZeroShotPolicy(Policy):
    """Asks a language model for every question; reads everything where its reply names no structure.

    Attributes:
        model: Who chooses.
        concurrency: Questions asked at the same time.
    """

    model: ChatModel = field(compare=False)
    concurrency: int = 1

    @property
    def name(self) -> str:
        return "LLM zero-shot"

    @property
    def kind(self) -> PolicyKind:
        return "zero_shot"

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], sandbox: Sandbox | None = None) -> Self:
        raise PolicyError("a zero-shot policy is asked of a model and never frozen")

    def spec(self) -> dict[str, Any]:
        return {"type": "zero_shot", "model": self.model.name, "prompt": Prompt.load(PROMPT).fingerprint}

    def fit(self, train: OutcomeMatrix, context: FitContext) -> State:
        return {}

    def select(self, state: State, question: PolicyInput) -> int:
        """The structures the model names.

        Raises:
            ModelError: It gave no reply.
        """
        meta = question.meta
        text = Prompt.load(PROMPT).fill(
            task_type=meta.get("task_type", UNKNOWN),
            domain=meta.get("domain", UNKNOWN),
            qa_type=meta.get("qa_type", UNKNOWN),
            steps=question.steps,
            question=question.question,
        )
        return read_choice(self.model.complete([Message("user", text)]).text)

    def select_many(self, state: State, questions: Sequence[PolicyInput]) -> list[int]:
        return map_concurrently(partial(self.select, state), questions, self.concurrency)


def read_choice(reply: str) -> int:
    """Mask of the structures whose letters stand alone in a reply; all of them where none does."""
    named = LETTER.findall(without_reasoning(reply))
    return subsets.encode(named) if named else subsets.FULL_SUBSET
