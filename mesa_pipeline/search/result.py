"""A finished search: what was tried, what was chosen and by which rule."""

from dataclasses import dataclass
from functools import cache

from mesa_pipeline.config import SearchSettings
from mesa_pipeline.evaluation.evaluate import evaluate_choices
from mesa_pipeline.outcomes import joined
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.search.archive import EVALUATED, Archive
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.records import ArchiveEntry
from mesa_pipeline.search.selection import Evidence, select_entry
from mesa_pipeline.search.store import SearchStore
from mesa_pipeline.search.trial import Invalid, gated, tried


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
        PolicyError: The refit failed.
    """
    turned = cache(lambda: SearchData.of(data.validation, data.train, data.context))
    evidence = Evidence(
        entries=archive.entries,
        validation=data.validation,
        choices={entry.id: store.choices(entry.behaviour).validation for entry in archive.entries},
        crossfit=lambda entry: _crossfitted(entry, turned(), sandbox),
    )
    entry = select_entry(evidence, settings)
    event = next(e for e in store.events if e["event"] == EVALUATED and e["id"] == entry.id)
    policy = ExecutablePolicy(title(entry), entry.source, sandbox)
    if settings.refit:
        return Chosen(entry, policy, policy.fit(joined(data.train, data.validation), data.context))
    return Chosen(entry, policy, store.state(event["state"]))


def title(entry: ArchiveEntry) -> str:
    """Name under which an entry is shown, such as ``structure-utility 07-explore``."""
    return f"{entry.direction} {entry.id}" if entry.direction else entry.id


def _crossfitted(entry: ArchiveEntry, turned: SearchData, sandbox: Sandbox) -> float | None:
    """Mean objective over both splits, each question chosen for by a fit on the other; ``turned`` has them the other way."""
    code = gated(entry.source, turned)
    trial = code if isinstance(code, Invalid) else tried(code, entry.id, turned, sandbox)
    if isinstance(trial, Invalid):
        return None
    other = evaluate_choices(entry.id, "executable", turned.validation, trial.choices.validation, turned.context.lambda_)
    questions = entry.validation.n + other.n
    return (entry.validation.n * entry.validation.objective + other.n * other.objective) / questions
