"""What a search's candidates score on test questions, once it is over: nothing is chosen by it (paper, Figure 5)."""

from dataclasses import dataclass

import numpy as np

from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.evaluate import outcomes_of
from mesa_pipeline.evaluation.statistics import Interval, paired_bootstrap
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FittedPolicy, policy_inputs
from mesa_pipeline.subsets import FULL_SUBSET


@dataclass(frozen=True)
class CandidateScore:
    """A candidate on the test questions.

    Attributes:
        id: Of the candidate.
        score: Mean over the scored questions with its episode-clustered interval.
        versus_all: Paired difference to reading all five structures.
    """

    id: str
    score: Interval
    versus_all: Interval


def candidate_score(id: str, fitted: FittedPolicy, test: OutcomeMatrix, settings: Settings) -> CandidateScore:
    """Let a candidate choose for the test questions, as it was when the search scored it.

    Args:
        id: Of the candidate.
        fitted: The candidate with what it learnt from the training outcomes.
        test: Outcomes of the test questions.
        settings: Labels shown and bootstrap.

    Raises:
        PolicyError: It fails on a question.
        ArtifactError: A cell needed was never swept, or nothing needed has a score.
    """
    found = outcomes_of(test, fitted.choices(policy_inputs(test, settings.search.labels)), id)
    evaluation = settings.evaluation

    def interval(values: np.ndarray) -> Interval:
        samples, confidence, seed = evaluation.bootstrap_samples, evaluation.confidence, evaluation.bootstrap_seed
        return paired_bootstrap(values, test.episode_ids, samples, confidence, seed)

    return CandidateScore(id, interval(found.scores), interval(found.scores - test.scores[:, FULL_SUBSET - 1]))
