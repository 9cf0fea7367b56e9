"""Reading within a hard limit on evidence tokens: composed evidence that never exceeds it, and what was given up for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.policies.budget import NOTHING, TokenBudget, choose_within, most_structures_of
from mesa_pipeline.policies.values import ValueModel
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.fitting import compose_all, cut_to_fit, exact_tokens
from mesa_pipeline.types import ComposedEvidence, Evidence

Retrieve = Callable[[Iterable[str]], Mapping[str, Evidence]]
"""Evidence of some structures for the question at hand, by code; asked for again it is the same."""


@dataclass(frozen=True)
class BudgetedReading:
    """What is read for one question within a budget.

    Attributes:
        limit: The budget, in evidence tokens.
        wanted: Mask the policy chose.
        wanted_tokens: Evidence tokens of that.
        subset: Mask of what is read, or ``NOTHING``.
        evidence: What is read of each structure, by code.
        composed: The same as the reader will see it: at most ``limit`` tokens.
        cut: Code of the structure of which not all is read; ``None`` where every one is whole.
        reason: What became of the policy's choice, in one line.
    """

    limit: int
    wanted: int
    wanted_tokens: int
    subset: int
    evidence: Mapping[str, Evidence]
    composed: ComposedEvidence
    cut: str | None
    reason: str

    @property
    def kept(self) -> bool:
        """Whether the policy's choice is read, and whole."""
        return self.subset == self.wanted and self.cut is None

    @property
    def dropped(self) -> tuple[str, ...]:
        """Codes of the structures that the policy chose and that are not read."""
        return tuple(code for code in subsets.decode(self.wanted) if code not in self.evidence)


def read_within(
    budget: TokenBudget, wanted: int, question: PolicyInput, retrieve: Retrieve, counter: TokenCounter
) -> BudgetedReading:
    """Read what the policy wants where it fits, else the worthiest subset that does and, in the room left, as much as fits of
    what would be worthiest without a limit.

    Where the choice does not fit, all five structures are retrieved and each of the 31 subsets is counted exactly: sections
    share steps, so their tokens do not add up. Without a model of expected values nothing but the structures wanted is looked
    at: the most of them that fit are read, then as much as fits of the rest. Where not even the smallest piece fits, nothing is
    read.

    Args:
        budget: The limit, and how to choose within it.
        wanted: Mask the policy chose.
        question: What the policy was shown.
        retrieve: Retrieves evidence.
        counter: Counts evidence tokens.
    """
    found, limit = retrieve(subsets.decode(wanted)), budget.limit
    wanted_tokens = exact_tokens(Composer(found, counter).compose(wanted), counter)
    if wanted_tokens <= limit:
        reason = f"its {wanted_tokens:,} tokens are within the {limit:,} allowed"
        return BudgetedReading(limit, wanted, wanted_tokens, wanted, found, compose_all(found, counter), None, reason)
    among = _alternatives(budget.values, wanted, question, retrieve, counter)
    whole = among.best_whole(limit)
    read, cut = among.filled(whole, limit)
    told = f"{subsets.label(wanted)} has {wanted_tokens:,} tokens, more than the {limit:,} allowed"
    reason = f"{told}; {_consequence(whole, read, informed=budget.values is not None)}"
    subset = subsets.encode(read) if read else NOTHING
    return BudgetedReading(limit, wanted, wanted_tokens, subset, read, compose_all(read, counter), cut, reason)


class _Filled(NamedTuple):
    read: dict[str, Evidence]
    cut: str | None


@dataclass(frozen=True)
class _Alternatives:
    """The 31 subsets for one question: arrays of shape ``(31,)``; one that is not to be chosen is worth minus infinity."""

    composer: Composer
    tokens: np.ndarray
    worth: np.ndarray

    def best_whole(self, limit: int) -> dict[str, Evidence]:
        """Evidence of the worthiest subset that fits as it is; empty where none does."""
        tokens = self.tokens.copy()
        while True:
            chosen = self._worthiest(tokens, limit)
            if chosen == NOTHING:
                return {}
            exact = exact_tokens(self.composer.compose(chosen), self.composer.counter)
            if exact <= limit:
                return {code: self.composer.evidence[code] for code in subsets.decode(chosen)}
            tokens[chosen - 1] = exact  # only a counter that does not add up over sections comes here

    def filled(self, whole: Mapping[str, Evidence], limit: int) -> "_Filled":
        """What is read whole, and beside it the structures worthiest without a limit, until one has to be cut.

        Where nothing is read whole, the worthiest structure of which a piece fits comes first, whether among those or not.
        """
        read = dict(whole)
        best = self._worthiest(self.tokens, np.inf)
        hoped_for = subsets.decode(best) if best != NOTHING else ()
        for code in self._by_worth():
            if code in read or (read and code not in hoped_for):
                continue
            part = cut_to_fit(self.composer.evidence[code], limit, self.composer.counter, beside=read)
            if part.is_empty:
                continue
            read[code] = part
            if part != self.composer.evidence[code]:
                return _Filled(read, code)
        return _Filled(read, None)

    def _worthiest(self, tokens: np.ndarray, limit: float) -> int:
        return int(choose_within(np.array([NOTHING]), self.worth[np.newaxis], tokens[np.newaxis], limit)[0])

    def _by_worth(self) -> list[str]:
        """Structures that returned something and may be read, worthiest first; ties go to fewer tokens, then to S T G V R."""
        singles = [mask for mask in subsets.SINGLE_SUBSETS if self.tokens[mask - 1] > 0 and np.isfinite(self.worth[mask - 1])]
        singles.sort(key=lambda mask: (-self.worth[mask - 1], self.tokens[mask - 1]))
        return [code for mask in singles for code in subsets.decode(mask)]


def _alternatives(
    values: ValueModel | None, wanted: int, question: PolicyInput, retrieve: Retrieve, counter: TokenCounter
) -> _Alternatives:
    composer = Composer(retrieve(subsets.STRUCTURE_CODES if values else subsets.decode(wanted)), counter)
    tokens = np.array([composer.compose(mask).tokens for mask in subsets.ALL_SUBSETS], dtype=np.float64)
    return _Alternatives(composer, tokens, values.worth(question, tokens) if values else most_structures_of(wanted))


def _consequence(whole: Mapping[str, Evidence], read: Mapping[str, Evidence], informed: bool) -> str:
    if not read:
        return "not a piece of any evidence fits, so nothing is read"
    added = "+".join(code for code in read if code not in whole)
    if not whole:
        return f"nothing fits whole, so of {added} is read what fits"
    why = "has the highest expected value" if informed else "is the most (a fixed choice says not what its parts are worth)"
    chosen = f"of what fits, {subsets.label(subsets.encode(whole))} {why}"
    return f"{chosen}; of {added} is added what fits" if added else chosen
