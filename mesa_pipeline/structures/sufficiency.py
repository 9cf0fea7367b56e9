"""Whether the steps retrieved suffice for a question, by a language model (paper, A.1: AMA-Agent's sufficiency checker).

The reply is read strictly: a verdict is a line that begins with it, and what is said around it is neither believed nor obeyed.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeAlias

from mesa_pipeline.llm import ChatModel, OpenChat
from mesa_pipeline.llm.structured import without_reasoning
from mesa_pipeline.structures.llm_prompts import ASKS, load_prompt, prompts_fingerprint, user_message
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

logger = logging.getLogger(__name__)

PARSE_VERSION = 1
VerdictKind: TypeAlias = Literal["sufficient", "steps", "code"]
MAX_REPLY_CHARS = 20_000
"""Of the end of a reply, which is where the verdict stands."""
ORNAMENTS = " \t*_`\"'>#•(–-"
NUMBERING = re.compile(r"[\dA-Ca-c]{1,2}[.)][ \t]+|verdict:|answer:", re.IGNORECASE)
VERDICT = re.compile(r"(sufficient|need[ _-](?:code|steps?|graph))(?!\w)[*_`\"' \t]*(.*)", re.IGNORECASE | re.DOTALL)
_UNIT = r"(?:(?:steps?|turns?)[ \t_#]{0,4})?"
ITEM = re.compile(
    rf"{_UNIT}(\d{{1,9}})(?!\d)(?:[ \t]{{0,4}}(?:-|–|—|to|through)[ \t]{{0,4}}{_UNIT}(\d{{1,9}})(?!\d))?", re.IGNORECASE
)
NEIGHBOURS = re.compile(r"[ \t,;]{0,4}(before|after)[ \t]{0,4}=[ \t]{0,4}(\d{1,9})(?!\d)", re.IGNORECASE)
SEPARATOR = re.compile(r"[\s,;&*_`•\[\]:]{0,16}(?:and(?!\w)[\s,;]{0,8})?", re.IGNORECASE)
REASON = re.compile(
    r"[\s\])*_`\"']{0,8}(?:$|[.(–—:-]|(?:because|to|for|in order|which|where|since|as|so|if)(?!\w))", re.IGNORECASE
)


@dataclass(frozen=True)
class LlmSufficiencyChecker:
    """A ``temporal.SufficiencyChecker`` that asks a language model.

    Attributes:
        chat: Opens the model.
        max_requested: Most steps it may ask for; of more, the first named.
        max_chars_per_step: Most characters of a step that the model is shown.
    """

    chat: OpenChat
    max_requested: int
    max_chars_per_step: int

    def identity(self) -> Mapping[str, Any]:
        return {
            "kind": "llm",
            "version": PARSE_VERSION,
            "model": self._model.name,
            "prompt": prompts_fingerprint("sufficiency"),
            "max_requested": self.max_requested,
            "max_chars_per_step": self.max_chars_per_step,
        }

    def request(self, question: str, candidates: Sequence[Step], known: range) -> list[int]:
        """See ``temporal.SufficiencyChecker``. A verdict that cannot be read, also when asked for once more, asks for nothing.

        Raises:
            ModelError: The model gave no reply: whether the steps suffice is not known.
        """
        prompt = load_prompt("sufficiency").fill(
            first=known.start,
            last=known.stop - 1,
            steps="\n\n".join(serialize_step(step, self.max_chars_per_step).text for step in candidates),
            question=question,
            max_requested=self.max_requested,
        )
        for ask in range(ASKS):
            wanted = read_verdict(self._model.complete([user_message(prompt, ask)], ask).text)
            if wanted is not None:
                return first_steps(wanted, known, self.max_requested)
        logger.warning("%s gave no readable verdict on whether steps suffice; no further ones are read", self._model.name)
        return []

    @cached_property
    def _model(self) -> ChatModel:
        return self.chat("check")


class Verdict(NamedTuple):
    """What a checker says.

    Attributes:
        kind: That the steps suffice, that others are needed, or that a program would have to answer.
        steps: The steps asked for, as ranges in the order they were named.
        said: What stands after the verdict on its line and below, such as what a program is to find.
    """

    kind: VerdictKind
    steps: tuple[range, ...]
    said: str


def read_verdict(reply: str) -> tuple[range, ...] | None:
    """The steps a reply asks for; none for ``SUFFICIENT`` and for ``NEED_CODE``, which code would have to answer.

    Returns:
        Ranges of step numbers, in the order they were named; ``None`` where there is no verdict.
    """
    verdict = read_whole_verdict(reply)
    return None if verdict is None else verdict.steps


def read_whole_verdict(reply: str) -> Verdict | None:
    """The verdict of a reply; ``None`` where there is none.

    The last verdict decides, as reasoning comes before it; requests on lines next to each other are one request.
    """
    verdict: Verdict | None = None
    lines = [_bare(line) for line in without_reasoning(reply)[-MAX_REPLY_CHARS:].splitlines()]
    after_request = False
    for number, line in enumerate(lines):
        match = VERDICT.match(line)
        if match is None:
            after_request = after_request and not line
            continue
        kind = _kind(match[1])
        below = lines[number + 1 :]
        wanted = _requested(match[2], below) if kind == "steps" else _plain(match[1], match[2])
        if wanted is not None:
            earlier = verdict.steps if verdict and kind == "steps" and after_request else ()
            verdict = Verdict(kind, (*earlier, *wanted), "\n".join([match[2], *below]).strip(" \t\n:*_`"))
            after_request = kind == "steps"
    return verdict


def first_steps(wanted: Iterable[range], known: range, limit: int) -> list[int]:
    """The first ``limit`` step numbers of ranges of any length, each once, inside ``known``."""
    inside = (range(max(part.start, known.start), min(part.stop, known.stop)) for part in wanted)
    return list(islice(dict.fromkeys(chain.from_iterable(islice(part, len(known)) for part in inside)), limit))


def _bare(line: str) -> str:
    """A line without the numbering and the marks of emphasis that models put before what they say."""
    bare = line.lstrip(ORNAMENTS)
    if numbering := NUMBERING.match(bare):
        bare = bare[numbering.end() :].lstrip(ORNAMENTS)
    return bare.rstrip()


def _kind(word: str) -> VerdictKind:
    return "sufficient" if not word.lower().startswith("need") else "code" if word.lower().endswith("code") else "steps"


def _plain(word: str, rest: str) -> tuple[range, ...] | None:
    """Asks for nothing, where the word stands alone or before punctuation: "sufficient evidence is missing" is no verdict."""
    is_verdict = not rest or rest[0] in ".:!(–—-" or "code" in word.lower()
    return () if is_verdict else None


def _requested(rest: str, following: Sequence[str]) -> tuple[range, ...] | None:
    """The steps of one request; those on the lines below it where there are none on its own."""
    if rest.strip(" \t:*_`"):
        return _read_steps(rest)
    found: list[range] = []
    for line in following:
        below = _read_steps(line)
        if below is None:
            break
        found.extend(below)
    return tuple(found) or None


def _read_steps(text: str) -> tuple[range, ...] | None:
    """Numbers and ranges at the beginning of a text, as long as nothing but a reason follows them; else ``None``."""
    found: list[range] = []
    position = 0
    while item := ITEM.match(text, _end(SEPARATOR.match(text, position), position)):
        ends = sorted(int(number) for number in item.groups() if number)
        first, last, position = ends[0], ends[-1], item.end()
        while beside := NEIGHBOURS.match(text, position):
            position = beside.end()
            reach = int(beside[2])
            first, last = (max(ends[0] - reach, 0), last) if beside[1].lower() == "before" else (first, ends[-1] + reach)
        found.append(range(first, last + 1))
    return tuple(found) if found and REASON.match(text, position) else None


def _end(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise
