"""Inspections of finished artifacts: is everything there, and does nothing hold what it must not.

They read the artifacts afresh and trust no header, so they also notice what was damaged or edited after it was made.
"""

import math
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, fields

from mesa_pipeline import subsets
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, Comparison
from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.search.freeze import POLICY_FILE, SOURCE_FILE, STATE_FILE
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import structure_of, structures_of
from mesa_pipeline.stages.optimize import FROZEN_FOLDER
from mesa_pipeline.stages.storage import (
    EpisodeEntry,
    place_of,
    read_episode,
    read_evidence,
    read_manifest,
    read_outcomes,
    read_questions,
)
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.types import Episode, Outcome

TELLING_CHARS = 12
"""Shorter answers ("yes", "4") stand in any text by chance and tell nothing of a leak."""
POLICY_INPUTS = {"question", "meta", "steps", "previews"}


def partial_episodes(context: StageContext) -> list[str]:
    """One line for each episode that cannot be read whole: steps or questions missing, or steps out of order."""
    problems: list[str] = []
    for entry in read_manifest(context.layout).episodes:
        try:
            episode = read_episode(context.layout, entry.key)
        except ArtifactError as error:
            problems.append(f"episode {entry.id!r}: {error}")
            continue
        steps = [step.index for step in episode.trajectory.steps]
        if len(steps) != entry.steps or len(episode.questions) != entry.question_count:
            problems.append(
                f"episode {entry.id!r}: {len(steps)} of {entry.steps} steps, "
                f"{len(episode.questions)} of {entry.question_count} questions"
            )
        elif steps != sorted(set(steps)):
            problems.append(f"episode {entry.id!r}: step indices do not increase")
    return problems


def repeated_questions(context: StageContext) -> list[str]:
    """One line for each question id that is given twice: outcomes are known by it, so two questions would share theirs."""
    entries = read_manifest(context.layout).episodes
    ids = Counter(question.id for entry in entries for question in read_questions(context.layout, entry.key))
    return [f"{count} questions have the id {id!r}" for id, count in ids.items() if count > 1]


def lacking_copies(context: StageContext, code: str) -> list[str]:
    """One line for each episode whose memory the server of a structure does not hold as it is; nothing without a server."""
    structure = structure_of(context.settings, context.layout.workspace, code)
    store = structure.store
    if store is None:
        return []
    return [
        f"episode {entry.id!r}: {store.name} does not hold its {structure.name} memory"
        for entry in read_manifest(context.layout).episodes
        if entry.steps and not store.holds(place_of(context.layout, structure, entry))
    ]


def fruitless_structures(context: StageContext) -> list[str]:
    """One line for each structure that returned nothing for any question: it is broken, not merely of little use."""
    asked = [entry for entry in read_manifest(context.layout).episodes if entry.question_count and entry.steps]
    structures = structures_of(context.settings, context.layout.workspace).values()
    return [
        f"the {structure.name} memory returned nothing for any question of {len(asked)} episodes"
        for structure in structures
        if asked
        and not any(
            evidence.items
            for entry in asked
            for evidence in read_evidence(context.layout, structure.code, structure.name, entry.key).values()
        )
    ]


def impossible_outcomes(context: StageContext) -> list[str]:
    """One line for each outcome that no sweep can have made: of no question or subset, or out of range."""
    problems: list[str] = []
    for entry, outcomes in _outcomes(context):
        known = {question.id for question in read_questions(context.layout, entry.key)}
        for outcome in outcomes:
            problem = _impossible(outcome, known)
            if problem:
                problems.append(f"question {outcome.question_id!r}, subset {outcome.subset}: {problem}")
    return problems


@dataclass(frozen=True)
class Scored:
    """How many outcomes of a table have a score, of all that there are."""

    outcomes: int
    unscored: int

    @property
    def unscored_share(self) -> float:
        return self.unscored / self.outcomes if self.outcomes else 0.0


def scored_outcomes(context: StageContext) -> Scored:
    """How much of the outcome table the reader or the judge failed to score."""
    found = [outcome.score is None for _, outcomes in _outcomes(context) for outcome in outcomes]
    return Scored(len(found), sum(found))


def incomplete_questions(context: StageContext) -> list[str]:
    """One line for each question that has not exactly one outcome for each of the 31 subsets."""
    problems: list[str] = []
    for entry in read_manifest(context.layout).episodes:
        if not entry.question_count:
            continue
        try:
            outcomes = read_outcomes(context.layout, entry.key)
        except ArtifactError as error:
            problems.append(f"episode {entry.id!r}: {error}")
            continue
        found = Counter((outcome.question_id, outcome.subset) for outcome in outcomes)
        for question in read_questions(context.layout, entry.key):
            whole = sum(found[question.id, mask] == 1 for mask in subsets.ALL_SUBSETS)
            if whole != len(subsets.ALL_SUBSETS):
                problems.append(f"question {question.id!r}: {whole} of {len(subsets.ALL_SUBSETS)} subsets")
    return problems


def answers_in_evidence(context: StageContext) -> list[str]:
    """One line for each reference answer that stands in the evidence although neither trajectory nor question says it."""
    problems: list[str] = []
    for entry in read_manifest(context.layout).episodes:
        if entry.question_count:
            problems += _answers_in_evidence(context, entry)
    return problems


def answers_in_policy(context: StageContext, seed: int) -> list[str]:
    """One line for each way in which the frozen policy could know reference answers.

    A policy may learn words from questions and previews, so an answer of one word is found only where no episode says it.
    """
    shown = {field.name for field in fields(PolicyInput)}
    problems = [f"a policy is shown {name!r}" for name in sorted(shown - POLICY_INPUTS)]
    folder = context.layout.policy(seed) / FROZEN_FOLDER
    parts = [folder / name for name in (POLICY_FILE, STATE_FILE, SOURCE_FILE)]
    frozen = _normal("\n".join(part.read_text(encoding="utf-8") for part in parts if part.exists()))
    held = {
        question.id: answer
        for entry in read_manifest(context.layout).episodes
        for question in read_questions(context.layout, entry.key)
        if len(answer := _normal(question.answer or "")) >= TELLING_CHARS and answer in frozen
    }
    said = _words_said(context, {answer for answer in held.values() if " " not in answer})
    problems += [
        f"the frozen policy holds the answer of question {id_!r}" for id_, answer in held.items() if answer not in said
    ]
    return problems


def frozen_comparison(context: StageContext, seed: int) -> Comparison:
    """The frozen policy's held-out result, with its paired difference to reading all five structures.

    Raises:
        ArtifactError: It has not been tested.
    """
    return read_test(context, seed).row(FROZEN_ROW)


def _outcomes(context: StageContext) -> Iterator[tuple[EpisodeEntry, list[Outcome]]]:
    """The outcomes of each episode that has readable ones; which have none is told by ``incomplete_questions``."""
    for entry in read_manifest(context.layout).episodes:
        try:
            yield entry, read_outcomes(context.layout, entry.key) if entry.question_count else []
        except ArtifactError:
            continue


def _impossible(outcome: Outcome, known: set[str]) -> str:
    if outcome.question_id not in known:
        return "no such question"
    if outcome.subset not in subsets.ALL_SUBSETS:
        return "no such subset"
    if outcome.score is None:
        return "" if outcome.error else "neither a score nor a reason why there is none"
    if not (math.isfinite(outcome.score) and 0 <= outcome.score <= 1):
        return f"score {outcome.score} is not between 0 and 1"
    return "" if outcome.tokens >= 0 else f"{outcome.tokens} tokens"


def _answers_in_evidence(context: StageContext, entry: EpisodeEntry) -> list[str]:
    episode = read_episode(context.layout, entry.key)
    known = _normal(_said(episode))
    telling = {
        question.id: answer
        for question in episode.questions
        if len(answer := _normal(question.answer or "")) >= TELLING_CHARS and answer not in known
    }
    problems: list[str] = []
    for structure in structures_of(context.settings, context.layout.workspace).values() if telling else ():
        evidence = read_evidence(context.layout, structure.code, structure.name, entry.key)
        for question_id, answer in telling.items():
            if any(answer in _normal(item.text) for item in evidence[question_id].items):
                problems.append(f"question {question_id!r}: its answer stands in the {structure.name} evidence alone")
    return problems


def _words_said(context: StageContext, words: Set[str]) -> set[str]:
    """Those of some words that a trajectory or question of the dataset says."""
    said: set[str] = set()
    for entry in read_manifest(context.layout).episodes:
        if sought := words - said:
            text = _normal(_said(read_episode(context.layout, entry.key)))
            said |= {word for word in sought if word in text}
    return said


def _said(episode: Episode) -> str:
    steps = [text for step in episode.trajectory.steps for text in (step.action, step.observation)]
    return "\n".join([episode.trajectory.task, *steps, *(question.text for question in episode.questions)])


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold()
