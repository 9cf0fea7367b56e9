"""A finished search: what was tried, what was chosen and by which rule."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Self

from mesa_pipeline.config import SearchSettings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.outcomes import joined
from mesa_pipeline.policies import FittedPolicy
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.search.archive import Archive
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.records import ArchiveEntry
from mesa_pipeline.search.selection import Evidence, select_entry
from mesa_pipeline.search.store import EVALUATED, SearchStore
from mesa_pipeline.search.trial import Invalid, Trial, gated, tried


@dataclass(frozen=True)
class SearchResult:
    """What a search tried and chose.

    Attributes:
        fingerprint: Key of what is frozen.
        search: Key of what the iterations found, which names the folder of their log.
        chosen: Id of the entry that is frozen.
        rule: How it was chosen.
        iterations: How far the search went.
        planned: Candidates in so many iterations.
        evaluated: Of them, those that were valid.
        invalid: Those that were not.
        duplicates: Those that behave as another one does.
        left_out: Validation questions without every score, which none was judged on.
        directions: Ids of the directions, in order.
        proposer: Name of what wrote the candidates.
        spent: What the proposals cost, by what was counted.
        tracked: Parameters that the tracker shows of it.
    """

    fingerprint: str
    search: str
    chosen: str
    rule: str
    iterations: int
    planned: int
    evaluated: int
    invalid: int
    duplicates: int
    left_out: int
    directions: tuple[str, ...]
    proposer: str
    spent: Mapping[str, int]
    tracked: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``."""
        return cls(**{**value, "directions": tuple(value["directions"])})


@dataclass(frozen=True)
class Chosen:
    """The entry to freeze, as a policy with what it learnt."""

    entry: ArchiveEntry
    policy: ExecutablePolicy
    state: object


def choose(archive: Archive, store: SearchStore, data: SearchData, sandbox: Sandbox, settings: SearchSettings) -> Chosen:
    """Choose the entry to freeze by the rule of the settings.

    It comes with the state it was scored with or, where the settings say ``refit``, with what it learns from both splits: its
    validation score is then that of the smaller fit. The paper does not refit.

    Raises:
        ConfigError: The rule needs more validation episodes than there are.
        PolicyError: What it learns from both splits is not valid.
    """
    turned = cache(lambda: SearchData.of(data.validation, data.train, data.context))
    evidence = Evidence(
        entries=archive.entries,
        validation=data.validation,
        choices={entry.id: store.choices(entry.behaviour).validation for entry in archive.entries},
        crossfit=lambda entry: _crossfitted(entry, turned(), sandbox),
    )
    entry = select_entry(evidence, settings)
    policy = ExecutablePolicy(title(entry), entry.source, sandbox)
    return Chosen(entry, policy, _refitted(entry, data, sandbox) if settings.refit else _scored_state(entry, store))


def as_scored(entry: ArchiveEntry, store: SearchStore, sandbox: Sandbox) -> FittedPolicy:
    """An entry as the policy that it was when it was scored."""
    return FittedPolicy(ExecutablePolicy(title(entry), entry.source, sandbox), _scored_state(entry, store))


def title(entry: ArchiveEntry) -> str:
    """Name under which an entry is shown, such as ``structure-utility 07-explore``."""
    return f"{entry.direction} {entry.id}" if entry.direction else entry.id


def _scored_state(entry: ArchiveEntry, store: SearchStore) -> object:
    return next(store.state(event["state"]) for event in store.of(EVALUATED) if event["id"] == entry.id)


def _refitted(entry: ArchiveEntry, data: SearchData, sandbox: Sandbox) -> object:
    both = SearchData.of(joined(data.train, data.validation), data.validation, data.context)
    trial = _tried_on(both, entry, sandbox)
    if isinstance(trial, Invalid):
        raise PolicyError(f"{title(entry)} cannot be fitted to train and validation together: {trial.reason}")
    return trial.state


def _crossfitted(entry: ArchiveEntry, turned: SearchData, sandbox: Sandbox) -> float | None:
    """Mean objective over both splits, each question chosen for by a fit on the other; ``turned`` has them the other way."""
    trial = _tried_on(turned, entry, sandbox)
    if isinstance(trial, Invalid):
        return None
    parts = (entry.validation, trial.worth.validation)
    return sum(part.n * part.objective for part in parts) / sum(part.n for part in parts)


def _tried_on(data: SearchData, entry: ArchiveEntry, sandbox: Sandbox) -> Trial | Invalid:
    code = gated(entry.source, data)
    return code if isinstance(code, Invalid) else tried(code, entry.id, data, sandbox)
