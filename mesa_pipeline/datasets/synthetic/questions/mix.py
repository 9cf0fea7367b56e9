"""Choosing the questions of one episode."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

from mesa_pipeline.datasets.synthetic.history import History
from mesa_pipeline.datasets.synthetic.questions import abstraction, causal, recall, updating
from mesa_pipeline.datasets.synthetic.questions.design import Draft, Kind, Subject
from mesa_pipeline.datasets.synthetic.wording import Wording

FALLBACK_KINDS = (*causal.FALLBACK_KINDS, *updating.FALLBACK_KINDS)  # asked where a short log supports nothing better
KINDS: tuple[Kind, ...] = (*recall.KINDS, *causal.KINDS, *updating.KINDS, *abstraction.KINDS, *FALLBACK_KINDS)
R, C, U, A = "recall", "causal", "state-updating", "abstraction"
TYPE_PATTERN = (R, C, U, A, R, U, C, R, A, C, U, R)  # 4 : 3 : 3 : 2 in twelve, as most AMA-Bench episodes have it


@dataclass(frozen=True, slots=True)
class DesignedQuestion:
    """A question together with the kind it is of. Tests and analyses see this; episodes hold only the question."""

    draft: Draft
    kind: Kind


class _Supply:
    """Hands out distinct questions of one type, taking turns between its kinds."""

    def __init__(self, kinds: Sequence[Kind], subject: Subject) -> None:
        preferred = subject.shuffled(kind for kind in kinds if kind not in FALLBACK_KINDS)
        fallback = [kind for kind in kinds if kind in FALLBACK_KINDS]
        self._waiting = deque((kind, kind.draft(subject)) for kind in preferred)
        self._fallback = deque((kind, kind.draft(subject)) for kind in fallback)

    def take(self, asked: set[str]) -> DesignedQuestion | None:
        """The next question not asked yet, which is noted as asked; ``None`` when the history supports no more."""
        while self._waiting or self._fallback:
            queue = self._waiting or self._fallback
            kind, drafts = queue.popleft()
            draft = next((draft for draft in drafts if _is_fair(draft, asked)), None)
            if draft is not None:
                queue.append((kind, drafts))
                asked.add(draft.text)
                return DesignedQuestion(draft, kind)
        return None


def _is_fair(draft: Draft, asked: set[str]) -> bool:
    return draft.text not in asked and draft.answer.casefold() not in draft.text.casefold()


def choose_questions(history: History, wording: Wording, count: int, rng: Random) -> list[DesignedQuestion]:
    """Up to ``count`` distinct questions; where one type runs out the others fill in, so fewer only if none is left."""
    subject = Subject(history, wording, rng)
    supplies = {qa_type: _Supply([kind for kind in KINDS if kind.qa_type == qa_type], subject) for qa_type in (R, C, U, A)}
    return list(islice(_draw(supplies), count))


def _draw(supplies: dict[str, _Supply]) -> Iterator[DesignedQuestion]:
    asked: set[str] = set()
    for qa_type in cycle(TYPE_PATTERN):
        others = [supplies[other] for other in TYPE_PATTERN[:4] if other != qa_type]
        taken = (supply.take(asked) for supply in (supplies[qa_type], *others))
        question = next((question for question in taken if question is not None), None)
        if question is None:
            return
        yield question
