"""A language model as the frozen answer model F (paper, Eq. 5 and Appendix C.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mesa_pipeline.errors import ModelError
from mesa_pipeline.llm import ChatModel, Message
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.types import Answer, ComposedEvidence

PROMPT = Path(__file__).parent / "prompts" / "answer.md"
VERSION = 1
NO_EVIDENCE = "(none)"
ONLY_THOUGHT = "the longest reply allowed ended before the answer began; allow more tokens for this role"


@dataclass(frozen=True)
class LlmReader:
    """Answers from the composed evidence, in one user message without a system message.

    Instructions and task come first, then the sections in their fixed order, the question last: prompts of one question share
    the longest prefix they can.

    Attributes:
        model: Who answers.
    """

    model: ChatModel

    @property
    def name(self) -> str:
        return f"llm:{self.model.name}"

    @cached_property
    def prompt(self) -> Prompt:
        """The wording."""
        return Prompt.load(PROMPT)

    def identity(self) -> Mapping[str, Any]:
        return {"version": VERSION, "model": self.model.name, "prompt": self.prompt.fingerprint}

    def answer(self, question: str, task: str, composed: ComposedEvidence) -> Answer:
        """The model's answer; one that it cannot give, or of which there is only the reasoning before it, has an error."""
        evidence = composed.text.rstrip() or NO_EVIDENCE
        text = self.prompt.fill(task=task or "(not given)", evidence=evidence, question=question)
        try:
            reply = self.model.complete([Message("user", text)])
        except ModelError as error:
            return Answer("", error=f"reader: {error}")
        answer = without_reasoning(reply.text).strip()
        if not answer and reply.text.strip() and reply.finish_reason == "length":
            return Answer("", error=f"reader: {ONLY_THOUGHT}")
        return Answer(answer)
