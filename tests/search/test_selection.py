import numpy as np
import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.search.selection import candidates, select_policy

T = 2


@pytest.fixture
def costly(settings: Settings) -> Settings:
    """Tokens priced so that the table of six questions has winners worked by hand."""
    search = settings.search.model_copy(update={"lambda_": 1e-4})
    return settings.model_copy(update={"search": search})


def test_the_archive_starts_with_all(settings):
    assert candidates(settings)[0].name == "all"


def test_the_lookup_that_generalises_wins_by_hand(six_questions, costly):
    """By domain: S on Game and T on WEB, J 3/4 at 1000 tokens; raw, shrunk at 20 tips Game back to T."""
    selection = select_policy(six_questions, six_questions, costly)
    assert selection.chosen.name == "lookup by domain (raw)"
    assert selection.chosen.validation.objective == pytest.approx(0.75 - 0.1)
    assert selection.chosen.validation == selection.chosen.train
    assert selection.left_out == 0
    by_name = {candidate.name: candidate for candidate in selection.candidates}
    assert by_name["lookup by domain (shrunk)"].validation.score == pytest.approx(0.5)
    assert by_name["all"].validation.objective == pytest.approx(0.5 - 0.5)


def test_equal_candidates_tie_by_tokens_then_by_name(six_questions, make_matrix, settings):
    flat = make_matrix([("e", "", None)] * 6, np.full((6, 31), 0.5), np.full((6, 31), 10.0))
    assert select_policy(flat, flat, settings).chosen.name == "G"  # names sort G R S T V all ...
    free = settings.model_copy(update={"search": settings.search.model_copy(update={"lambda_": 0.0})})
    flat.tokens[:, T - 1] = 9.0
    assert select_policy(flat, flat, free).chosen.name == "T"


def test_validation_outcomes_change_no_fitted_state(six_questions, make_matrix, settings):
    rng = np.random.default_rng(0)
    labels = [(question.episode_id, question.domain, question.qa_type) for question in six_questions.questions]
    states = [
        [candidate.fitted.state for candidate in select_policy(six_questions, validation, settings).candidates]
        for validation in (six_questions, make_matrix(labels, rng.random((6, 31)), six_questions.tokens))
    ]
    assert states[0] == states[1]


def test_selection_reads_validation(six_questions, make_matrix, costly):
    labels = [(question.episode_id, question.domain, question.qa_type) for question in six_questions.questions]
    scores = np.zeros((6, 31))
    scores[:, 8 - 1] = 1.0
    chosen = select_policy(six_questions, make_matrix(labels, scores, six_questions.tokens), costly).chosen
    assert chosen.name == "V"
    assert chosen.validation.score == 1.0
    assert chosen.train.score == pytest.approx(0.2)


def test_failing_on_hard_questions_wins_nothing(six_questions, make_matrix, costly):
    """S failed on the hard half. Averaged over what it answered it would be best of all, at 0.90 against 0.52 for T."""
    labels = [(question.episode_id, question.domain, question.qa_type) for question in six_questions.questions]
    scores = np.repeat([[0.9], [0.1]], 3, axis=0) * np.ones((6, 31))
    scores[:, T - 1] += 0.02
    scores[3:, 0] = np.nan
    selection = select_policy(six_questions, make_matrix(labels, scores, six_questions.tokens), costly)
    assert selection.chosen.name == "T"
    assert selection.left_out == 3
    assert {candidate.validation.n for candidate in selection.candidates} == {3}


def test_every_candidate_is_reported_in_order(six_questions, settings):
    seen = []
    selection = select_policy(six_questions, six_questions, settings, on_candidate=seen.append)
    assert tuple(seen) == selection.candidates
    assert [candidate.name for candidate in seen] == [policy.name for policy in candidates(settings)]


def test_a_missing_or_unscored_validation_stops_the_selection(six_questions, make_matrix, settings):
    labels = [(question.episode_id, question.domain, question.qa_type) for question in six_questions.questions]
    unscored = make_matrix(labels, np.full((6, 31), np.nan), six_questions.tokens)
    with pytest.raises(ArtifactError, match="mesa sweep"):
        select_policy(six_questions, unscored, settings)
