"""AMA-Agent's search by code: a language model writes a program, it is run confined, and what goes wrong is fed back."""

import re
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.baselines.base import RunProgram
from mesa_pipeline.config import AmaAgentSettings
from mesa_pipeline.errors import MissingDependency, PolicyError
from mesa_pipeline.llm import ChatModel, Message
from mesa_pipeline.llm.metering import note
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.structures.llm_prompts import valid_unicode
from mesa_pipeline.structures.records import clip
from mesa_pipeline.types import Step, Trajectory

PARSE_VERSION = 1
PROMPTS = Path(__file__).parent / "prompts"
WRITE, AGAIN = (Prompt.load(PROMPTS / f"ama_agent_{name}.md") for name in ("code", "again"))
FENCE = re.compile(r"```[ \t]*(?:(?:python|py)[ \t]*)?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
DEFINITION = re.compile(r"^def[ \t]+search\b", re.MULTILINE)
NO_PROGRAM = "the reply holds no program: write it between ```python and ```"


@dataclass(frozen=True)
class CodeSearch:
    """Searches a whole trajectory for what cannot be found by reading a few turns.

    Attributes:
        settings: Tries, and what is shown to who writes the program.
        model: Writes it.
        run: Runs it, confined.
    """

    settings: AmaAgentSettings
    model: ChatModel
    run: RunProgram

    def find(self, question: str, wanted: str, trajectory: Trajectory) -> str | None:
        """What the first program that runs to its end finds; ``None`` where none does, or none can be confined here.

        Args:
            question: The question.
            wanted: What is to be computed, in the judge's words.
            trajectory: What is searched, at least one step.

        Raises:
            ModelError: The model gave no reply.
        """
        examples = "\n".join(self._example(step) for step in trajectory.steps[: self.settings.example_turns])
        request = WRITE.fill(question=question, wanted=wanted, count=len(trajectory.steps), examples=examples)
        messages = [Message("user", request)]
        for _ in range(self.settings.tries):
            reply = self.model.complete(messages).text
            note("programs written")
            try:
                return self.run(_program(reply), trajectory)
            except MissingDependency:
                note("programs that nothing here can confine")
                return None
            except PolicyError as error:
                note("programs that failed")
                reason = str(error)[: self.settings.feedback_chars]
            messages += [Message("assistant", valid_unicode(reply)), Message("user", AGAIN.fill(reason=reason))]
        note("searches by code given up")
        return None

    def _example(self, step: Step) -> str:
        texts = (clip(text, self.settings.example_chars).text for text in (step.action, step.observation))
        action, observation = map(repr, texts)
        return f'{{"index": {step.index}, "action": {action}, "observation": {observation}}}'


def read_program(reply: str) -> str | None:
    """The program in a reply: the last fenced block that defines ``search``, else the last block, else a bare program."""
    said = without_reasoning(reply)
    blocks = [block[1] for block in FENCE.finditer(said)]
    defining = [block for block in blocks if DEFINITION.search(block)]
    if blocks:
        return (defining or blocks)[-1]
    return said if DEFINITION.search(said) else None


def _program(reply: str) -> str:
    program = read_program(reply)
    if program is None:
        raise PolicyError(NO_PROGRAM)
    return program
