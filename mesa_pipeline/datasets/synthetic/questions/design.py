"""What every kind of question consists of, and the small habits they share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from mesa_pipeline.datasets.synthetic.history import History
from mesa_pipeline.datasets.synthetic.wording import Wording

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a drafting function works from: the history, the environment's words, and chance."""

    history: History
    wording: Wording
    rng: Random

    def shuffled(self, items: Iterable[T]) -> list[T]:
        chosen = list(items)
        self.rng.shuffle(chosen)
        return chosen

    def phrase(self, templates: Sequence[str], **words: object) -> str:
        """One of the templates, filled in; ``{agent}`` is always known."""
        text = self.rng.choice(templates).format(agent=self.wording.agent, **words)
        return text[0].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its gold answer.

    Attributes:
        text: The question.
        answer: Gold, computed from the simulated state.
        steps: Steps whose records suffice, ascending.
        facts: Strings the answer rests on; each stands in the record of one of ``steps``.
    """

    text: str
    answer: str
    steps: tuple[int, ...]
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question.

    Attributes:
        name: Unique name.
        qa_type: The capability it asks for, as the benchmark names them.
        structures: Codes of a smallest set of structures it was designed to be answerable from.
        misled_by_more: Whether the log elsewhere holds a near-identical record with another answer, so that reading more
            brings the wrong one along.
        draft: Yields questions of this kind in random order, as many as the history supports.
    """

    name: str
    qa_type: str
    structures: tuple[str, ...]
    draft: Callable[[Subject], Iterator[Draft]]
    misled_by_more: bool = False


def enumerate_words(items: Sequence[str]) -> str:
    """ "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def times(count: int) -> str:
    """ "once", "twice", "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
