"""MESA and the baselines that were run beside it, gathered for the reports (paper, Section 5.2)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mesa_pipeline.artifacts import fingerprint, read_header
from mesa_pipeline.baselines import BASELINES
from mesa_pipeline.evaluation.compared_systems import Answers, Comparison, Retrieval, compare_systems
from mesa_pipeline.evaluation.held_out import FROZEN_ROW, TestResult
from mesa_pipeline.evaluation.metrics import token_f1
from mesa_pipeline.evaluation.system_costs import PARALLEL_ROW, MeanCost, mean_cost, one_after_another, side_by_side
from mesa_pipeline.evaluation.systems import SystemOutcome
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.outcomes import OutcomeMatrix, to_matrix
from mesa_pipeline.reports.inputs import ComparedSystems
from mesa_pipeline.stages.baselines import build_costs, has_answers, read_answers
from mesa_pipeline.stages.build import own_build_costs
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.retrieve import retrieve_costs
from mesa_pipeline.stages.storage import read_manifest, read_outcomes, read_questions
from mesa_pipeline.subsets import STRUCTURE_CODES, STRUCTURE_NAMES
from mesa_pipeline.types import Question


def answered_systems(context: StageContext) -> dict[str, str]:
    """Fingerprint of the current answers of each baseline that has some, by its code.

    Raises:
        ArtifactError: The episodes are not there yet.
    """
    found: dict[str, str] = {}
    for code in BASELINES:
        if not context.layout.answers(code, "any").parent.exists():
            continue
        entries = [entry for entry in read_manifest(context.layout).episodes if has_answers(context, code, entry)]
        if entries:
            seals = [read_header(context.layout.answers(code, entry.key)) for entry in entries]
            found[code] = fingerprint("answered", code, seals)
    return found


def compared_systems(
    context: StageContext, codes: Sequence[str], tests: Sequence[TestResult], matrix: OutcomeMatrix
) -> ComparedSystems:
    """The systems of ``codes``, MESA's structures and its frozen policies on the questions tested, and what building took.

    Raises:
        ArtifactError: No policy was tested, or outcomes are missing.
    """
    answers = [Answers(code, BASELINES[code].title, read_answers(context, code)) for code in codes]
    retrieval = _retrieval(context, matrix)
    return ComparedSystems(
        scored=compare_systems(tests, matrix, answers, retrieval),
        f1=_by_f1(context, tests, matrix, answers, retrieval),
        builds=_builds(context, codes),
    )


def _by_f1(
    context: StageContext,
    tests: Sequence[TestResult],
    matrix: OutcomeMatrix,
    answers: Sequence[Answers],
    retrieval: Retrieval,
) -> Comparison:
    """The same comparison with every stored answer scored by token F1."""
    episodes = set(matrix.episode_ids)
    entries = [entry for entry in read_manifest(context.layout).episodes if entry.id in episodes]
    questions = {question.id: question for entry in entries for question in read_questions(context.layout, entry.key)}
    outcomes = [
        replace(outcome, score=_f1(context.dataset, questions[outcome.question_id], outcome.answer, outcome.error))
        for entry in entries
        for outcome in read_outcomes(context.layout, entry.key)
    ]
    rescored = [
        replace(
            found,
            outcomes={id: _rescored(context.dataset, questions[id], o) for id, o in found.outcomes.items() if id in questions},
        )
        for found in answers
    ]
    return compare_systems(tests, to_matrix(matrix.questions, outcomes), rescored, retrieval)


def _rescored(dataset: str, question: Question, outcome: SystemOutcome) -> SystemOutcome:
    return replace(outcome, score=_f1(dataset, question, outcome.answer, outcome.error))


def _f1(dataset: str, question: Question, answer: str, error: str | None) -> float | None:
    """Token F1 of an answer; none where no answer was given, which only an error tells from an empty one."""
    if question.answer is None or (error is not None and not answer):
        return None
    return token_f1(dataset.partition(".")[0], answer, question.answer, question.qa_type)


def _retrieval(context: StageContext, matrix: OutcomeMatrix) -> Retrieval:
    """What retrieval asked of models, shared evenly among an episode's questions, as it was noted episode by episode."""
    noted = [retrieve_costs(context, code) for code in STRUCTURE_CODES]
    entries = {entry.id: entry for entry in read_manifest(context.layout).episodes}
    shares = {id: [_share(costs.get(entry.key), entry.question_count) for costs in noted] for id, entry in entries.items()}
    if not len(matrix):
        return Retrieval.without_models(0)
    rows = np.array([shares[question.episode_id] for question in matrix.questions], dtype=float)
    return Retrieval(prompt_tokens=rows[:, :, 0], calls=rows[:, :, 1])


def _share(cost: Cost | None, questions: int) -> tuple[float, float]:
    """Prompt tokens and calls for one question; unknown where nothing was noted."""
    if cost is None or not questions:
        return np.nan, np.nan
    return cost.prompt_tokens / questions, cost.calls / questions


def _builds(context: StageContext, codes: Sequence[str]) -> tuple[MeanCost, ...]:
    """Of the baselines in the order of the paper, of MESA's five structures together, and of each of them."""
    structures = {code: own_build_costs(context, code) for code in STRUCTURE_CODES}
    made = {code: (BASELINES[code].title, build_costs(context, code)) for code in codes}
    made[FROZEN_ROW] = ("MESA, five structures one after another", one_after_another(structures))
    made[PARALLEL_ROW] = ("MESA, five structures side by side", side_by_side(structures))
    made |= {code: (f"{code} {STRUCTURE_NAMES[code]}", found) for code, found in structures.items()}
    evaluation = context.settings.evaluation
    return tuple(mean_cost(code, title, costs.values(), evaluation) for code, (title, costs) in made.items())
