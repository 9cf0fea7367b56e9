"""The policies that were the best so far in a search, on test questions: for people to see once all is decided."""

import logging
from collections.abc import Sequence

import numpy as np

from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.evaluation.candidates import CandidateScore, candidate_score
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.reports.search_findings import SearchFinding
from mesa_pipeline.search.result import as_scored
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import open_store, read_archive, read_frozen
from mesa_pipeline.stages.split import read_split

logger = logging.getLogger(__name__)


def improvement_scores(
    context: StageContext, search: SearchFinding, tests: Sequence[TestResult], matrix: OutcomeMatrix
) -> tuple[CandidateScore, ...]:
    """What each improvement of a search scores on the test questions of its split seed.

    They are opened for it after the frozen policy was tested on them alone, and what is found is written nowhere that a search
    reads. A candidate that fails on a question it never saw is left out.

    Args:
        context: Where the search lies.
        search: The finished search.
        tests: The tests as they are; without one of this search's frozen policy nothing is opened.
        matrix: Outcomes of every swept question.
    """
    if search.test_among(tests) is None:
        return ()
    try:
        read_frozen(context, search.seed).require_strong()
        archive, store = read_archive(context, search.seed), open_store(context, search.seed)
        held_out = set(read_split(context, search.seed).test)
    except (ArtifactError, PolicyError) as error:
        logger.warning("the search of seed %d is drawn without scores on test: %s", search.seed, error)
        return ()
    test = matrix.select(np.array([question.episode_id in held_out for question in matrix.questions], dtype=bool))
    sandbox = open_sandbox(context.settings.policies.sandbox)
    found: list[CandidateScore] = []
    for entry in archive.improvements:
        try:
            found.append(candidate_score(entry.id, as_scored(entry, store, sandbox), test, context.settings))
        except (ArtifactError, PolicyError) as error:
            logger.warning("candidate %s of seed %d has no score on test: %s", entry.id, search.seed, error)
    return tuple(found)
