"""A candidate on test questions, against figures worked by hand on six questions."""

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.candidates import candidate_score
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.policies.fixed import FixedPolicy
from mesa_pipeline.subsets import FULL_SUBSET


def test_score_and_difference_to_all_five_by_hand(six_questions, settings):
    fitted = FixedPolicy(1).fitted(six_questions, FitContext.of(settings, 0))
    found = candidate_score("07-explore", fitted, six_questions, settings)
    own, everything = six_questions.scores[:, 0], six_questions.scores[:, FULL_SUBSET - 1]
    assert found.id == "07-explore"
    assert found.score.mean == pytest.approx(np.nanmean(own))
    assert found.versus_all.mean == pytest.approx(np.nanmean(own - everything))
    assert found.score.low <= found.score.mean <= found.score.high
    assert found.score.clusters == len(set(six_questions.episode_ids[~np.isnan(own)]))


def test_without_any_score_there_is_none(six_questions, settings):
    nothing = type(six_questions)(six_questions.questions, np.full_like(six_questions.scores, np.nan), six_questions.tokens)
    fitted = FixedPolicy(1).fitted(six_questions, FitContext.of(settings, 0))
    with pytest.raises(ArtifactError, match="no question has a score"):
        candidate_score("07-explore", fitted, nothing, settings)
