"""Judge: further judges on the answers of the tested policy, of reading all five, and of the baselines (paper, Table 6)."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mesa_pipeline.artifacts import exclusive, read_json_as, write_sealed_json
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, TestResult
from mesa_pipeline.evaluation.leads import leads
from mesa_pipeline.evaluation.panel import JudgedAnswer, JudgedSeed, agreements, judge_rows, panel_of
from mesa_pipeline.evaluation.rewards import Judgement, Reward
from mesa_pipeline.evaluation.systems import SystemOutcome
from mesa_pipeline.stages.baselines import read_answers
from mesa_pipeline.stages.compare_systems import answered_systems
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.models import open_judges, open_reading
from mesa_pipeline.stages.parallel import run_units
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import EpisodeEntry, read_manifest, read_outcomes, read_questions, read_task
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.subsets import FULL_SUBSET
from mesa_pipeline.types import Question, Summary

ALL_ROW = "all"


def judge(context: StageContext, seed: int) -> Summary:
    """Have every judge of the settings, and the reward itself, score the test answers of a seed.

    Replies are kept, so a rerun asks only for verdicts that are missing.

    Raises:
        ConfigError: The settings name no further judge.
        ArtifactError: The policy has not been tested.
        MissingDependency: A judge cannot be reached.
    """
    started = time.perf_counter()
    judges = _judges(context)
    tested = read_test(context, seed)
    answered = answered_systems(context)
    answers = _answers(context, tested, answered)
    found = {name: _judged(context, name, reward, answers) for name, reward in judges.items()}
    scores = [[judgement.score for judgement in judgements] for judgements in found.values()]
    asked = [JudgedAnswer(answer.system, answer.question.id, answer.episode) for answer in answers]
    panel = panel_of(tuple(judges), asked, scores)
    judged = JudgedSeed(
        seed=seed,
        judges={name: reward.name for name, reward in judges.items()},
        manifest_sha256=tested.receipt.manifest_sha256,
        outcomes_sha256=tested.receipt.outcomes_sha256,
        rows=judge_rows(panel),
        agreements=agreements(panel),
        answered=answered,
        leads=leads(panel),
    )
    with exclusive(context.layout):
        write_sealed_json(context.layout.judgements(seed), judged.to_json())
    facts: dict[str, object] = {
        f"{row.judge}: {row.system}": "-" if row.accuracy is None else f"{100 * row.accuracy:.1f}" for row in judged.rows
    }
    made = sum(score is not None for row in scores for score in row)
    return Summary(f"judge seed {seed}", made, 0, time.perf_counter() - started, _failures(answers, found), facts)


def read_judgements(context: StageContext, seed: int) -> JudgedSeed:
    """What the judges made of the test answers of a seed.

    Raises:
        ArtifactError: They were not asked, or what was kept of them was changed.
    """
    return read_json_as(JudgedSeed.from_json, context.layout.judgements(seed), f"mesa judge --seed {seed}")


@dataclass(frozen=True)
class _Asked:
    """An answer to be judged; ``error`` says why there is none where the reader gave none."""

    system: str
    episode: str
    question: Question
    task: str
    text: str
    error: str | None


def _answers(context: StageContext, tested: TestResult, codes: Iterable[str]) -> list[_Asked]:
    """The test answers of the frozen policy, then of reading all five, then of each baseline, in the order of the questions."""
    entries = read_manifest(context.layout).entries(read_split(context, tested.seed).test)
    baselines = {code: read_answers(context, code) for code in codes}
    found = [answer for entry in entries for answer in _of_episode(context, entry, tested.choices, baselines)]
    order = [FROZEN_ROW, ALL_ROW, *baselines]
    return sorted(found, key=lambda answer: order.index(answer.system))


def _of_episode(
    context: StageContext,
    entry: EpisodeEntry,
    choices: Mapping[str, int],
    baselines: Mapping[str, Mapping[str, SystemOutcome]],
) -> Iterator[_Asked]:
    task = read_task(context.layout, entry.key)
    outcomes = {(o.question_id, o.subset): o for o in read_outcomes(context.layout, entry.key)}
    for question in read_questions(context.layout, entry.key):
        chosen = choices.get(question.id)
        for system, subset in ((FROZEN_ROW, chosen), (ALL_ROW, FULL_SUBSET)):
            outcome = outcomes.get((question.id, subset)) if chosen is not None and subset is not None else None
            if outcome is not None:
                yield _Asked(system, entry.id, question, task, outcome.answer, None if outcome.answer else outcome.error)
        for code, outcomes_of in baselines.items():
            answer = outcomes_of.get(question.id) if chosen is not None else None
            if answer is not None:
                yield _Asked(code, entry.id, question, task, answer.answer, None if answer.answer else answer.error)


def _judges(context: StageContext) -> dict[str, Reward]:
    """The reward itself, then the further judges, by name."""
    further = open_judges(context.settings, context.layout.workspace)
    if not further:
        raise ConfigError(
            "no further judge is named; add some under evaluation.judges, each with name, base_url, model and key_variable"
        )
    return {"reward": open_reading(context.settings, context.layout).reward, **further}


def _failures(answers: Sequence[_Asked], found: Mapping[str, Sequence[Judgement]]) -> tuple[str, ...]:
    """A line for each answer that a judge could not score."""
    return tuple(
        f"{name} on question {answer.question.id!r}: {judgement.error}"
        for name, judgements in found.items()
        for answer, judgement in zip(answers, judgements, strict=True)
        if judgement.error
    )


def _judged(context: StageContext, name: str, reward: Reward, answers: list[_Asked]) -> list[Judgement]:
    """One judgement an answer, in order; answers wait for their judge side by side."""
    found: dict[_Asked, Judgement] = {}
    threads = context.settings.llm.chat.max_concurrency
    context.progress(f"judging with {name}", 0, len(answers))
    for done, result in enumerate(run_units(partial(_judge_one, reward), answers, threads, threads=True), start=1):
        found[result.unit] = result.value or Judgement(None, error=result.error)
        context.progress(f"judging with {name}", done, len(answers))
    return [found[answer] for answer in answers]


def _judge_one(reward: Reward, answer: _Asked) -> Judgement:
    if answer.error is not None:
        return Judgement(None, error=answer.error)
    return reward.judge(answer.question, answer.task, answer.text)
