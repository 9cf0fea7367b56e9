"""Baselines: build, ask and score one memory system that MESA is compared with.

The workers compute, this process alone writes. Each finished question is appended to its episode's journal at once, so a kill
loses at most the questions in flight; one that got no score is tried again by the next call.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

from mesa_pipeline.artifacts import Journal, Layout, Record, exclusive, fingerprint, is_current, read_header, read_records
from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.system_costs import one_after_another
from mesa_pipeline.evaluation.systems import SystemOutcome, ask_system
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.stages.build import build, is_built, own_build_costs
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_reading, waits_for_endpoint
from mesa_pipeline.stages.parallel import run_units, worker_count
from mesa_pipeline.stages.storage import (
    EpisodeEntry,
    read_manifest,
    read_memory,
    read_questions,
    read_task,
    remove_others,
)
from mesa_pipeline.stages.systems import baseline_of, build_waits, system_of
from mesa_pipeline.stages.timings import append_cost, read_costs
from mesa_pipeline.types import Question, Summary


@dataclass(frozen=True)
class AskedQuestion:
    """One question to one baseline."""

    entry: EpisodeEntry
    question_id: str


def run_baseline(context: StageContext, code: str) -> Summary:
    """Build the memories of a baseline, and of the structures it is built from, then answer every question from them.

    Counts questions: those scored by this call are ``made``, those found are ``kept``. A question that fails is listed, the
    others go on, and the next call tries just those again.

    Raises:
        ConfigError: There is no baseline of that code.
        ArtifactError: The episodes are not there yet.
        MissingDependency: Something that it needs is not there; says what to install or set.
    """
    started = time.perf_counter()
    baseline = baseline_of(context.settings, context.layout, code)
    failed: list[str] = []
    for part in (*baseline.shares, code):
        failed += build(context, part).failed
    manifest = read_manifest(context.layout)
    asked = [entry for entry in manifest.episodes if entry.question_count]
    ready = [entry for entry in asked if is_built(context.layout, baseline, entry)]
    with exclusive(context.layout):
        run = _Run(context, code, [entry for entry in ready if not is_answered(context, code, entry)])
        failed += run.complete()
        remove_others(context.layout.answers(code, "any").parent, manifest)
    kept = sum(entry.question_count for entry in ready) - run.made - run.missing
    return Summary(f"baseline {baseline.title}", run.made, kept, time.perf_counter() - started, tuple(failed))


def answers_fingerprint(context: StageContext, code: str, entry: EpisodeEntry) -> str:
    """Key of a baseline's outcomes on an episode: its memory, how it is read, the questions, and the reading."""
    baseline = baseline_of(context.settings, context.layout, code)
    memory = baseline.memory_fingerprint(entry.trajectory)
    reading = open_reading(context.settings, context.layout).identity()
    answers = context.settings.baselines.answers
    return fingerprint("baseline", code, memory, dict(baseline.retrieve_identity()), entry.questions, reading, answers)


def is_answered(context: StageContext, code: str, entry: EpisodeEntry) -> bool:
    """Whether all of a baseline's outcomes on the episode are there and current."""
    return is_current(context.layout.answers(code, entry.key), answers_fingerprint(context, code, entry))


def has_answers(context: StageContext, code: str, entry: EpisodeEntry) -> bool:
    """Whether there are current outcomes of a baseline on the episode, though some may lack a score."""
    expected = answers_fingerprint(context, code, entry)
    header = read_header(context.layout.answers(code, entry.key)) or {}
    return header.get("fingerprint") in (expected, f"incomplete:{expected}")


def read_answers(context: StageContext, code: str) -> dict[str, SystemOutcome]:
    """A baseline's current outcomes, by question id; those of questions not asked yet are missing.

    One that got no score is there, with the reason.

    Raises:
        ArtifactError: The episodes are not there yet.
    """
    entries = [entry for entry in read_manifest(context.layout).episodes if has_answers(context, code, entry)]
    records: list[Record] = []
    made: dict[str, str] = {}
    for entry in entries:
        of_episode = list(read_records(context.layout.answers(code, entry.key), _command(code)))
        made |= dict.fromkeys((record["question_id"] for record in of_episode), answers_fingerprint(context, code, entry))
        records += of_episode
    noted = read_costs(context.layout, _timing(code), made)
    return {record["question_id"]: _outcome(record, noted.get(record["question_id"], Cost())) for record in records}


def build_costs(context: StageContext, code: str) -> dict[str, Cost]:
    """What building a baseline's memory with the settings took, for each episode of which that is noted, by its key.

    It is counted as if nothing had been there: with the parts that it shares with others.

    Raises:
        ArtifactError: The episodes are not there yet.
    """
    return one_after_another({part: own_build_costs(context, part) for part in (*BASELINES[code].shares, code)})


@dataclass
class _OpenEpisode:
    """An episode being asked about: the key of its outcomes, their journal and the questions still to do."""

    fingerprint: str
    order: dict[str, int]
    journal: Journal
    remaining: set[str]


class _Run:
    """The episodes to ask about, with their journals; counts the outcomes made and the ones still missing."""

    def __init__(self, context: StageContext, code: str, entries: list[EpisodeEntry]) -> None:
        self._context = context
        self._code = code
        self._entries = entries
        self.made = 0
        self.missing = 0

    def complete(self) -> list[str]:
        """Ask every open question; returns one line for each that failed."""
        settings = self._context.settings
        opened = {entry.key: self._open(entry) for entry in self._entries}
        units = [
            AskedQuestion(entry, question_id)
            for entry in self._entries
            for question_id in opened[entry.key].order
            if question_id in opened[entry.key].remaining
        ]
        waits = BASELINES[self._code].query_model != "none" or waits_for_endpoint(settings, "sweep")
        waits = waits or build_waits(settings, self._code)
        workers = min(settings.llm.chat.max_concurrency if waits else worker_count(settings.run.workers), len(units))
        work = partial(_ask, self._context.layout, settings, self._code)
        failed: list[str] = []
        self._context.progress(f"asking {BASELINES[self._code].title}", 0, len(units))
        for done, result in enumerate(run_units(work, units, workers, threads=waits), start=1):
            problem = result.error or (result.value.error if result.value else None)
            if result.value is not None:
                self._store(opened[result.unit.entry.key], result.value)
            if problem is not None:
                failed.append(f"question {result.unit.question_id!r}: {problem}")
                self.missing += 1
            self._context.progress(f"asking {BASELINES[self._code].title}", done, len(units))
        for episode in opened.values():
            self._close(episode)
        return failed

    def _open(self, entry: EpisodeEntry) -> _OpenEpisode:
        """Start or continue an episode's journal; its header names what made every outcome in it."""
        context, reading = self._context, open_reading(self._context.settings, self._context.layout)
        baseline = baseline_of(context.settings, context.layout, self._code)
        key = answers_fingerprint(context, self._code, entry)
        header = {
            "fingerprint": key,
            "episode_id": entry.id,
            "build": dict(baseline.build_identity()),
            "retrieve": dict(baseline.retrieve_identity()),
            "reader": reading.reader.name,
            "reward": reading.reward.name,
            "tokenizer": reading.counter.name,
            "answers": context.settings.baselines.answers,
        }
        journal = Journal(context.layout.answers(self._code, entry.key), header)
        order = {question.id: n for n, question in enumerate(read_questions(context.layout, entry.key))}
        done = {record["question_id"] for record in journal.records if record["error"] is None}
        return _OpenEpisode(key, order, journal, set(order) - done)

    def _store(self, episode: _OpenEpisode, outcome: SystemOutcome) -> None:
        timeless = replace(outcome, cost=replace(outcome.cost, seconds=0.0))  # time would make the same work other bytes
        append_cost(self._context.layout, _timing(self._code), outcome.question_id, episode.fingerprint, outcome.cost)
        episode.journal.append([asdict(timeless)])  # last: what is in the journal is not asked again, so its time is known
        if outcome.error is None:
            episode.remaining.discard(outcome.question_id)
            self.made += 1

    def _close(self, episode: _OpenEpisode) -> None:
        latest = {record["question_id"]: record for record in episode.journal.records}
        records = [latest[question_id] for question_id in episode.order if question_id in latest]
        if episode.remaining:
            episode.journal.publish_incomplete(records)
        else:
            episode.journal.finish(records)


def _ask(layout: Layout, settings: Settings, code: str, unit: AskedQuestion) -> SystemOutcome:
    """Ask one question, in a worker."""
    inputs = _episode_inputs(layout, settings, code, unit.entry)
    baseline = system_of(settings, layout, code)
    question = inputs.questions[unit.question_id]
    return ask_system(
        baseline, inputs.memory, question, inputs.task, open_reading(settings, layout), settings.baselines.answers
    )


@dataclass(frozen=True)
class _EpisodeInputs:
    task: str
    questions: Mapping[str, Question]
    memory: Any


@lru_cache(maxsize=4)
def _episode_inputs(layout: Layout, settings: Settings, code: str, entry: EpisodeEntry) -> _EpisodeInputs:
    """One episode's questions and memory; the units of an episode follow one another, so a few are worth keeping."""
    baseline = system_of(settings, layout, code)
    questions = {question.id: question for question in read_questions(layout, entry.key)}
    return _EpisodeInputs(read_task(layout, entry.key), questions, read_memory(layout, baseline, entry.key))


def _outcome(record: Record, noted: Cost) -> SystemOutcome:
    cost = Cost(**{**record["cost"], "seconds": noted.seconds})
    return SystemOutcome(**{**record, "cost": cost, "steps": tuple(record["steps"])})


def _timing(code: str) -> str:
    return f"ask-{code}"


def _command(code: str) -> str:
    return f"mesa baselines run --system {code}"
