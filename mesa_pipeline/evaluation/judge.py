"""A language model as judge of answers (paper, Section 5.1 and Appendix C.4; AMA-Bench's protocol)."""

import re
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.errors import ModelError
from mesa_pipeline.evaluation.rewards import Judgement, reference_of
from mesa_pipeline.llm import ChatModel, Message
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.types import Question

PROMPT = Path(__file__).parent / "prompts" / "judge.md"
VERDICT = re.compile(r"(?<!\w)(yes|no)(?!\w)", re.IGNORECASE)
AGAIN = "That holds no verdict. Reply with one word: yes if the candidate is right, no if it is not."
NOTHING = "(nothing)"
VERDICT_SCHEMA = {"type": "string", "enum": ["yes", "no"]}
"""For endpoints that enforce one; what it lets through is read like any other reply."""
UNREADABLE = "the judge's reply holds neither yes nor no"
MAX_REPLY_CHARS = 400


@dataclass(frozen=True)
class LlmJudge:
    """Right or wrong, 1 or 0, in the eyes of a language model; unscored where it gives no readable verdict.

    Attributes:
        model: Who judges.
        asks: How often a verdict is asked for until one can be read. The model sees what it said before: asked the same again,
            at temperature 0, it would say the same.
    """

    model: ChatModel
    asks: int

    @property
    def name(self) -> str:
        return f"llm_judge:{self.model.name}:{fingerprint(Prompt.load(PROMPT).text, AGAIN, self.asks)}"

    def judge(self, question: Question, task: str, answer: str) -> Judgement:
        """Grade an answer.

        Raises:
            DataError: The question has no reference answer.
        """
        prompt = Prompt.load(PROMPT).fill(
            task_type=question.qa_type or "(not given)",
            task=task or "(not given)",
            question=question.text,
            reference=reference_of(question),
            answer=answer or "(no answer)",
        )
        messages, reply = [Message("user", prompt)], ""
        for seed in range(self.asks):
            try:
                text = self.model.complete(messages, seed).text
            except ModelError as error:
                return Judgement(None, error=f"judge: {error}")
            reply = text[-MAX_REPLY_CHARS:]
            if (verdict := read_verdict(text)) is not None:
                return Judgement(float(verdict), reply)
            messages += [Message("assistant", reply or NOTHING), Message("user", AGAIN)]
        return Judgement(None, reply, error=UNREADABLE)


def read_verdict(reply: str) -> bool | None:
    """The last whole word yes or no outside of any reasoning decides; ``None`` where there is neither."""
    found = VERDICT.findall(without_reasoning(reply))
    return found[-1].lower() == "yes" if found else None
