"""Sweep: fill the outcome table for every question and all 31 subsets.

The workers compute, this process alone writes. Each finished question is appended to its episode's journal at once, so a kill
loses at most the questions in flight. A finished episode's file holds its outcomes in one fixed order, whatever order they came
in; an episode with failures is readable, and its journal stays for the next sweep to continue.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Journal, Layout, exclusive, fingerprint, is_current
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.sweep import sweep_question
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading, structures_of, waits_for_endpoint
from mesa_pipeline.stages.parallel import run_units, worker_count
from mesa_pipeline.stages.retrieve import evidence_fingerprint, is_retrieved, retrieved_by
from mesa_pipeline.stages.spending import prefill_facts
from mesa_pipeline.stages.storage import (
    EpisodeEntry,
    outcome_record,
    read_evidence,
    read_manifest,
    read_questions,
    read_task,
    remove_others,
)
from mesa_pipeline.stages.timings import append_cost
from mesa_pipeline.types import Evidence, Outcome, Question, Summary


@dataclass(frozen=True)
class QuestionUnit:
    """One question's share of the sweep."""

    entry: EpisodeEntry
    question_id: str


def sweep(context: StageContext) -> Summary:
    """Complete the outcome table.

    Counts outcomes: those computed by this call are ``made``, those found are ``kept``. A question that fails is listed, the
    others go on, and the next call tries just those again. So it is with an episode that lacks some evidence: it is marked
    incomplete, never scored from the structures that are left.

    Raises:
        ArtifactError: A structure's evidence is not there or outdated for every episode; says which command makes it.
    """
    started = time.perf_counter()
    manifest = read_manifest(context.layout)
    asked = [entry for entry in manifest.episodes if entry.question_count]
    with exclusive(context.layout):
        stale = [entry for entry in asked if not is_swept(context, entry)]  # once nobody else can sweep them
        lacking = _lacking_evidence(context, asked, stale)
        run = _SweepRun(context, [entry for entry in stale if entry.id not in lacking])
        failed = run.complete()
        for entry in stale:
            if entry.id in lacking:
                run.leave_out(entry)
                failed.append(f"episode {entry.id!r}: {lacking[entry.id]}")
        remove_others(context.layout.outcomes("any").parent, manifest)
    kept = sum(entry.question_count for entry in asked) * len(subsets.ALL_SUBSETS) - run.made - run.missing
    facts: dict[str, object] = {"subsets": len(subsets.ALL_SUBSETS), "questions": sum(e.question_count for e in asked)}
    facts |= prefill_facts(context, [entry for entry in asked if context.layout.outcomes(entry.key).exists()])
    return Summary("sweep", run.made, kept, time.perf_counter() - started, tuple(failed), facts)


def outcomes_fingerprint(context: StageContext, entry: EpisodeEntry) -> str:
    """Key of an episode's outcomes: its evidence from all structures, its questions with their references, and the reading."""
    structures = structures_of(context.settings, context.layout.workspace).values()
    evidence = [evidence_fingerprint(structure, entry) for structure in structures]
    reading = open_reading(context.settings, context.layout).identity()
    return fingerprint("outcomes", evidence, entry.questions, entry.trajectory, reading)


def is_swept(context: StageContext, entry: EpisodeEntry) -> bool:
    """Whether all outcomes of the episode are there and current."""
    return is_current(context.layout.outcomes(entry.key), outcomes_fingerprint(context, entry))


def _lacking_evidence(context: StageContext, asked: list[EpisodeEntry], stale: list[EpisodeEntry]) -> dict[str, str]:
    """What keeps a stale episode from being swept, by episode id; empty when nothing does.

    Raises:
        ArtifactError: Some structure has current evidence for none of the episodes asked about.
    """
    lacking: dict[str, str] = {}
    for structure in structures_of(context.settings, context.layout.workspace).values():
        missing = [entry for entry in stale if not is_retrieved(context.layout, structure, entry)]
        fault = f"{structure.name} evidence is missing or outdated"
        remedy = (
            f"run `mesa build --structure {structure.code}` and `mesa retrieve --structure {structure.code}`, "
            "or `mesa run` for everything"
        )
        if missing and not any(is_retrieved(context.layout, structure, entry) for entry in asked):
            raise ArtifactError(f"{fault} for {len(missing)} episodes (first: {missing[0].id!r}); {remedy}")
        for entry in missing:
            lacking.setdefault(entry.id, f"{fault}; {remedy}")
    return lacking


@dataclass
class _OpenEpisode:
    """An episode being swept: the key of its outcomes, their journal and the questions still to do."""

    entry: EpisodeEntry
    fingerprint: str
    order: dict[str, int]
    journal: Journal
    remaining: set[str]


class _SweepRun:
    """The episodes of one sweep with their journals; counts the outcomes made and the ones still missing."""

    def __init__(self, context: StageContext, entries: list[EpisodeEntry]) -> None:
        self._context = context
        self._entries = entries
        self._open: dict[str, _OpenEpisode] = {}
        self._started = 0
        self.made = 0
        self.missing = 0

    def complete(self) -> list[str]:
        """Sweep every open question; returns one line for each that failed."""
        total = sum(entry.question_count for entry in self._entries)
        settings = self._context.settings
        waits = waits_for_endpoint(settings, "sweep")
        workers = min(settings.llm.chat.max_concurrency if waits else worker_count(settings.run.workers), total)
        work = partial(_sweep_unit, self._context.layout, self._context.settings)
        failed: list[str] = []
        self._context.progress("sweeping questions", 0, total)
        for result in run_units(work, self._units(), workers, threads=waits):
            made, took = self._open[result.unit.entry.key].fingerprint, Cost(result.seconds)
            append_cost(self._context.layout, "sweep", result.unit.question_id, made, took)
            self._store(result.unit, result.value or [])
            problem = result.error or _first_error(result.value or [])
            if problem is not None:
                failed.append(f"question {result.unit.question_id!r}: {problem}")
            self._context.progress("sweeping questions", total - self._left(), total)
        self._context.progress("sweeping questions", total, total)
        for episode in self._open.values():
            episode.journal.publish_incomplete(_in_order(episode))
        return failed

    def leave_out(self, entry: EpisodeEntry) -> None:
        """Mark an episode that cannot be swept: what it has of outcomes stays readable, but is not called current."""
        episode = _open_episode(self._context, entry)
        episode.journal.publish_incomplete(_in_order(episode))
        self.missing += len(episode.remaining) * len(subsets.ALL_SUBSETS)

    def _left(self) -> int:
        opened = sum(len(episode.remaining) for episode in self._open.values())
        return opened + sum(entry.question_count for entry in self._entries[self._started :])

    def _units(self) -> Iterator[QuestionUnit]:
        """Open questions in order; opens an episode's journal when its turn comes."""
        for entry in self._entries:
            self._started += 1
            episode = _open_episode(self._context, entry)
            self._open[entry.key] = episode
            todo = [question_id for question_id in episode.order if question_id in episode.remaining]
            self._finish_if_complete(entry.key)
            yield from (QuestionUnit(entry, question_id) for question_id in todo)

    def _store(self, unit: QuestionUnit, outcomes: list[Outcome]) -> None:
        episode = self._open[unit.entry.key]
        episode.journal.append([outcome_record(outcome) for outcome in outcomes])
        scored = sum(outcome.error is None for outcome in outcomes)
        self.made += scored
        self.missing += len(subsets.ALL_SUBSETS) - scored
        if scored == len(subsets.ALL_SUBSETS):
            episode.remaining.discard(unit.question_id)
            self._finish_if_complete(unit.entry.key)

    def _finish_if_complete(self, key: str) -> None:
        if not self._open[key].remaining:
            episode = self._open.pop(key)
            episode.journal.finish(_in_order(episode))


def _open_episode(context: StageContext, entry: EpisodeEntry) -> _OpenEpisode:
    """Start or continue an episode's journal; its header names what made every outcome in it."""
    reading, key = open_reading(context.settings, context.layout), outcomes_fingerprint(context, entry)
    structures = structures_of(context.settings, context.layout.workspace)
    header = {
        "fingerprint": key,
        "episode_id": entry.id,
        "build": {code: dict(structure.build_identity()) for code, structure in structures.items()},
        "retrieve": {code: retrieved_by(structure, entry) for code, structure in structures.items()},
        "reader": reading.reader.name,
        "reward": reading.reward.name,
        "tokenizer": reading.counter.name,
    }
    journal = Journal(context.layout.outcomes(entry.key), header)
    order = {question.id: n for n, question in enumerate(read_questions(context.layout, entry.key))}
    return _OpenEpisode(entry, key, order, journal, set(order) - _complete_questions(journal))


def _in_order(episode: _OpenEpisode) -> list[dict[str, Any]]:
    """The latest record of every cell, by question and subset."""
    latest = {(record["question_id"], record["subset"]): record for record in episode.journal.records}
    return [latest[cell] for cell in sorted(latest, key=lambda cell: (episode.order[cell[0]], cell[1]))]


def _first_error(outcomes: list[Outcome]) -> str | None:
    return next((outcome.error for outcome in outcomes if outcome.error is not None), None)


def _complete_questions(journal: Journal) -> set[str]:
    """Questions all of whose outcomes an earlier run wrote without error; one cut short is swept anew."""
    cells: dict[str, set[int]] = {}
    for record in journal.records:
        if record["error"] is None:
            cells.setdefault(record["question_id"], set()).add(record["subset"])
    return {question_id for question_id, masks in cells.items() if len(masks) == len(subsets.ALL_SUBSETS)}


def _sweep_unit(layout: Layout, settings: Settings, unit: QuestionUnit) -> list[Outcome]:
    """Sweep one question, in a worker process."""
    inputs = _episode_inputs(layout, settings, unit.entry)
    question = inputs.questions[unit.question_id]
    evidence = {code: found[question.id] for code, found in inputs.evidence.items()}
    reading = open_reading(settings, layout)
    return sweep_question(question, inputs.task, evidence, subsets.prefix_order(), reading)


@dataclass(frozen=True)
class _EpisodeInputs:
    task: str
    questions: dict[str, Question]
    evidence: dict[str, dict[str, Evidence]]


@lru_cache(maxsize=4)
def _episode_inputs(layout: Layout, settings: Settings, entry: EpisodeEntry) -> _EpisodeInputs:
    """One episode's questions and evidence; the units of an episode follow one another, so a few are worth keeping."""
    structures = structures_of(settings, layout.workspace).values()
    evidence = {s.code: read_evidence(layout, s.code, s.name, entry.key) for s in structures}
    questions = {question.id: question for question in read_questions(layout, entry.key)}
    return _EpisodeInputs(read_task(layout, entry.key), questions, evidence)
