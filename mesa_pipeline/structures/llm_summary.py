"""Summaries by a language model, one request a segment (paper, Appendix A.1, "Summary (S) Memory", and C.1)."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mesa_pipeline.llm import ChatModel, OpenChat
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.structures.extractive_summary import ExtractiveSummarizer
from mesa_pipeline.structures.llm_prompts import ASKS, load_prompt, prompts_fingerprint, user_message
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

logger = logging.getLogger(__name__)

PARSE_VERSION = 1
CHARS_PER_WORD = 6
MAX_REPLY_CHARS = 20_000
"""What follows is not read: no honest summary of one segment is longer."""
MARKER = re.compile(r"^[ \t*#>`_]{0,8}summary[ \t*_`]{0,4}:[ \t*_`]{0,4}", re.IGNORECASE | re.MULTILINE)
STEP_HEAD = re.compile(
    r"^[ \t>*#•–-]{0,8}(?:\d{1,3}[.)][ \t]{0,4})?[*_]{0,3}(?:steps?|turns?)[ \t]{0,4}#?(\d{1,9})(?!\d)"
    r"(?:[ \t]{0,4}(?:-|–|—|to)[ \t]{0,4}(\d{1,9})(?!\d))?(?:\*\*|__)?(:?)(?:\*\*|__)?",
    re.IGNORECASE | re.MULTILINE,
)
CYCLE = re.compile(r"(.{20,240}?)\1{3,}", re.DOTALL)


@dataclass(frozen=True)
class LlmSummarizer:
    """A ``Summarizer`` that asks a language model for notes on each segment, independently of the others.

    Attributes:
        chat: Opens the model.
        max_chars: Most characters of one segment's summary; the model is told how many words that is.
        fallback: Summarises a segment for which the model has no words, also when asked once more; the text says so.
    """

    chat: OpenChat
    max_chars: int
    fallback: ExtractiveSummarizer

    def identity(self) -> Mapping[str, Any]:
        return {
            "kind": "llm",
            "version": PARSE_VERSION,
            "model": self._model.name,
            "prompts": prompts_fingerprint("summary"),
            "max_words": self._max_words,
            "fallback": dict(self.fallback.identity()),
        }

    def summarize(self, task: str, steps: Sequence[Step], preceding: Step | None) -> str:
        """See ``summary.Summarizer``; ``preceding`` is not shown to the model. A segment without any text is not asked about.

        Raises:
            ModelError: The model gave no reply.
        """
        if all(step.is_empty for step in steps):
            return ""
        first, last = steps[0].index, steps[-1].index
        request = load_prompt("summary").fill(
            task=task or "(a conversation: note what was said, by whom and when)",
            max_words=self._max_words,
            first=first,
            last=last,
            segment="\n\n".join(serialize_step(step).text for step in steps),
        )
        for ask in range(ASKS):
            if text := read_summary(self._model.complete([user_message(request, ask)], ask).text):
                return text
        logger.warning("%s gave no summary of steps %d-%d; excerpts stand in for it", self._model.name, first, last)
        excerpts = self.fallback.summarize(task, steps, preceding)
        return f"Excerpts of steps {first}-{last}, which the model left without a summary:\n{excerpts}"

    @property
    def _max_words(self) -> int:
        return max(self.max_chars // CHARS_PER_WORD, 1)

    @cached_property
    def _model(self) -> ChatModel:
        return self.chat("summarize")


def read_summary(reply: str) -> str:
    """The summary in a reply: what follows the last marker that anything follows, else all that is not reasoning.

    Lines that begin with a step's number get the one form that structures cite by; loops are cut short. Empty where there is
    nothing but reasoning.
    """
    text = without_reasoning(reply)[:MAX_REPLY_CHARS]
    parts = [part for part in MARKER.split(text)[1:] if part.strip()]
    kept = parts[-1] if parts else text
    return CYCLE.sub(_once, STEP_HEAD.sub(_step_head, kept)).strip().strip("`").strip()


def _step_head(match: re.Match[str]) -> str:
    first, last, colon = match.groups()
    return (f"Step {first}" if last is None else f"Steps {first}-{last}") + colon


def _once(match: re.Match[str]) -> str:
    """One turn of a loop of words; rows of figures, such as a board full of zeros, are data and stay."""
    is_words = any(character.isalpha() for character in match[1])
    return match[1] if is_words else match[0]
