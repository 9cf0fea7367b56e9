"""What writes candidate policies. To add a proposer: a module here, a line in ``open_proposer``.

A proposer sees training outcomes, the archive, the arms' statistics and the failure cards. Of validation it sees means alone:
shown single validation questions, it would train on the split that selects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mesa_pipeline.config import SandboxSettings, SearchSettings
from mesa_pipeline.evaluation.failures import FailureCard
from mesa_pipeline.llm import OpenChat
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.search.directions import Direction
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics, Rejection, Slot

TEMPLATE = "template"
"""Name of the one proposer whose code is trusted, since no language model wrote it."""


@dataclass(frozen=True)
class ProposalRequest:
    """What a proposer is asked for, and all it is told.

    Attributes:
        iteration: From 1.
        slot: Build on what worked, try something else, or repair a recurring error.
        direction: The arm to follow.
        parent: Entry to build on: the arm's best for exploit, the frontier for repair; ``None`` where there is none.
        archive: Every entry so far, in order, ``all`` first.
        rejections: Every candidate that did not enter, in order.
        arms: Statistics of every arm.
        cards: Recurring errors of the frontier, worst first.
        train: Outcomes to learn from.
        context: Token price, most structures, labels, seed of the search.
        seed: For every draw of this proposal; differs for each iteration and slot.
    """

    iteration: int
    slot: Slot
    direction: Direction
    parent: ArchiveEntry | None
    archive: tuple[ArchiveEntry, ...]
    rejections: tuple[Rejection, ...]
    arms: tuple[ArmStatistics, ...]
    cards: tuple[FailureCard, ...]
    train: OutcomeMatrix
    context: FitContext
    seed: int


@dataclass(frozen=True)
class Proposal:
    """A candidate's source, not yet checked.

    Attributes:
        source: The code; its ``META`` names direction, hypothesis and parents.
        exchange: What was said to a language model and what it replied, in order, as ``{"role": ..., "content": ...}``.
        spent: What it cost, such as ``{"calls": 2, "prompt_tokens": 5100}``; empty without a model.
        failure: Why there is no source; ``None`` where there is one.
    """

    source: str
    exchange: tuple[Mapping[str, str], ...] = ()
    spent: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None


class Proposer(Protocol):
    """Writes one candidate at a time.

    ``propose`` is a function of the request (and of a model's replies): equal requests give equal sources. What it returns may
    be invalid; it is checked afterwards. ``trusted`` is false for a language model's code, which needs a strong sandbox.

    Raises:
        MissingDependency: The model behind it cannot be reached.
    """

    @property
    def name(self) -> str: ...

    @property
    def trusted(self) -> bool: ...

    def propose(self, request: ProposalRequest) -> Proposal: ...


def open_proposer(settings: SearchSettings, sandbox: SandboxSettings, open_chat: OpenChat) -> Proposer:
    """The proposer the settings name.

    Args:
        settings: Of the search.
        sandbox: Limits of the policies it writes.
        open_chat: Opens the language model behind it, where there is one.
    """
    if settings.proposer == "llm":
        from mesa_pipeline.search.proposers.llm import LlmProposer

        return LlmProposer(open_chat("propose"), settings.llm, sandbox)
    from mesa_pipeline.search.proposers.template import TemplateProposer

    return TemplateProposer()


__all__ = [
    "TEMPLATE",
    "ArchiveEntry",
    "ArmStatistics",
    "Proposal",
    "ProposalRequest",
    "Proposer",
    "Rejection",
    "Slot",
    "open_proposer",
]
