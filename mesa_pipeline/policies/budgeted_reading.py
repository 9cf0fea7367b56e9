"""Reading within a hard limit on evidence tokens: composed evidence that never exceeds it, and what was given up for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.policies.budget import NOTHING, TokenBudget, choose_within, most_structures_of
from mesa_pipeline.policies.values import ValueModel
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.fitting import cut_to_fit, exact_tokens
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
        cut: Code of the structure whose evidence was cut to fit; ``None`` where all is whole.
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
    """Read what the policy wants where it fits, else the worthiest that does.

    Where it does not fit, all five structures are retrieved and each of the 31 subsets is counted exactly: sections share
    steps, so their tokens do not add up. Without a model of expected values nothing but the structures wanted is looked at,
    and the most of them that fit are read. Where nothing fits whole, the worthiest structure's evidence is cut; where not
    even that leaves anything, nothing is read.

    Args:
        budget: The limit, and how to choose within it.
        wanted: Mask the policy chose.
        question: What the policy was shown.
        retrieve: Retrieves evidence.
        counter: Counts evidence tokens.
    """
    composer = Composer(retrieve(subsets.decode(wanted)), counter)
    wanted_tokens, limit = exact_tokens(composer.compose(wanted), counter), budget.limit
    if wanted_tokens <= limit:
        found = _Found(wanted, composer.evidence)
        reason = f"its {wanted_tokens:,} tokens are within the {limit:,} allowed"
    else:
        among = _alternatives(budget.values, wanted, question, retrieve, counter)
        found = among.best_whole(limit) or among.best_cut(limit) or _Found(NOTHING, {})
        told = f"{subsets.label(wanted)} has {wanted_tokens:,} tokens, more than the {limit:,} allowed"
        reason = f"{told}; {_consequence(found, informed=budget.values is not None)}"
    composed = Composer(found.evidence, counter).compose(found.subset) if found.subset else ComposedEvidence()
    return BudgetedReading(limit, wanted, wanted_tokens, found.subset, found.evidence, composed, found.cut, reason)


@dataclass(frozen=True)
class _Found:
    subset: int
    evidence: Mapping[str, Evidence]
    cut: str | None = None


@dataclass(frozen=True)
class _Alternatives:
    """The 31 subsets for one question: arrays of shape ``(31,)``; one that is not to be chosen is worth minus infinity."""

    composer: Composer
    tokens: np.ndarray
    worth: np.ndarray

    def best_whole(self, limit: int) -> _Found | None:
        """The worthiest subset that fits as it is."""
        tokens = self.tokens.copy()
        while True:
            (chosen,) = choose_within(np.array([NOTHING]), self.worth[np.newaxis], tokens[np.newaxis], limit).tolist()
            if chosen == NOTHING:
                return None
            exact = exact_tokens(self.composer.compose(chosen), self.composer.counter)
            if exact <= limit:
                return _Found(chosen, {code: self.composer.evidence[code] for code in subsets.decode(chosen)})
            tokens[chosen - 1] = exact  # only a counter that does not add up over sections comes here

    def best_cut(self, limit: int) -> _Found | None:
        """The worthiest single structure of which something fits."""
        singles = [mask for mask in subsets.SINGLE_SUBSETS if self.tokens[mask - 1] > 0 and np.isfinite(self.worth[mask - 1])]
        for mask in sorted(singles, key=lambda mask: (-self.worth[mask - 1], self.tokens[mask - 1], mask)):
            (code,) = subsets.decode(mask)
            left = cut_to_fit(self.composer.evidence[code], limit, self.composer.counter)
            if not left.is_empty:
                return _Found(mask, {code: left}, cut=code)
        return None


def _alternatives(
    values: ValueModel | None, wanted: int, question: PolicyInput, retrieve: Retrieve, counter: TokenCounter
) -> _Alternatives:
    codes = subsets.STRUCTURE_CODES if values else subsets.decode(wanted)
    composer = Composer(retrieve(codes), counter)
    tokens = np.array([composer.compose(mask).tokens for mask in subsets.ALL_SUBSETS], dtype=np.float64)
    return _Alternatives(composer, tokens, values.worth(question, tokens) if values else most_structures_of(wanted))


def _consequence(found: _Found, informed: bool) -> str:
    if found.subset == NOTHING:
        return "nor does a piece of any evidence fit, so nothing is read"
    name = subsets.label(found.subset)
    if found.cut:
        return f"nor does any other choice fit, so {name} is cut"
    if informed:
        return f"of what fits, {name} has the highest expected value"
    return f"{name} is the most of it that fits (a fixed choice says nothing of what its parts are worth)"
