"""Hand-worked matrices: every expected figure below can be checked on paper."""

import numpy as np
import pytest

from mesa_pipeline import subsets
from mesa_pipeline.config import Settings
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.reports.findings import (
    competition_ranks,
    group_findings,
    mean_subset_findings,
    pareto_front,
    subset_findings,
)

S, T, ST, FULL = subsets.encode("S"), subsets.encode("T"), subsets.encode("ST"), subsets.FULL_SUBSET


def small_matrix(scores: list[dict[int, float]], tokens: dict[int, float] | None = None, domains: str = "") -> OutcomeMatrix:
    """One question for each dictionary of scores by mask; masks left out score 0 and cost 100 tokens."""
    values, costs = np.zeros((len(scores), 31)), np.full((len(scores), 31), 100.0)
    for row, known in enumerate(scores):
        for mask, score in known.items():
            values[row, mask - 1] = score
    for mask, cost in (tokens or {}).items():
        costs[:, mask - 1] = cost
    names = domains or "a" * len(scores)
    infos = tuple(QuestionInfo(f"e{row}#0", f"e{row}", "q", names[row], "t", None, 5) for row in range(len(scores)))
    return OutcomeMatrix(infos, values, costs)


def test_the_best_subset_comes_first_with_its_means() -> None:
    best, second, *_ = subset_findings(small_matrix([{S: 1.0, T: 0.5}, {S: 0.5, T: 0.75}], {S: 40, T: 10}))
    assert (best.mask, best.score, best.tokens, best.rank, best.scored, best.unscored) == (S, 0.75, 40, 1, 2, 0)
    assert (second.mask, second.score, second.rank) == (T, 0.625, 2)


def test_equal_scores_share_a_rank_and_the_cheaper_stands_first() -> None:
    found = subset_findings(small_matrix([{S: 0.5, T: 0.5, ST: 0.2}], {S: 40, T: 10}))
    assert [(f.mask, f.rank) for f in found[:3]] == [(T, 1), (S, 1), (ST, 3)]


def test_scores_that_differ_in_the_last_bit_are_equal() -> None:
    assert list(competition_ranks(np.array([0.1 + 0.2, 0.3, 0.1, np.nan]))) == [1, 1, 3, 0]


def test_pareto_front_by_hand() -> None:
    scores, tokens = np.full(31, np.nan), np.full(31, np.nan)
    points = {1: (0.2, 10), 2: (0.2, 20), 3: (0.5, 20), 4: (0.5, 20), 5: (0.4, 30), 6: (0.9, 90), 7: (0.1, 10)}
    for mask, (score, cost) in points.items():
        scores[mask - 1], tokens[mask - 1] = score, cost
    assert pareto_front(scores, tokens) == {1, 3, 4, 6}


def test_unscored_cells_are_left_out_and_counted() -> None:
    found = {f.mask: f for f in subset_findings(small_matrix([{S: 0.8, T: np.nan}, {S: np.nan, T: np.nan}]))}
    assert (found[S].score, found[S].scored, found[S].unscored) == (0.8, 1, 1)
    assert np.isnan(found[T].score)
    assert (found[T].rank, found[T].on_front) == (0, False)


def test_winner_margin_and_ties_of_each_group(settings: Settings) -> None:
    matrix = small_matrix([{S: 0.6, FULL: 0.2}, {T: 0.4, ST: 0.4, FULL: 0.3}, {S: 0.2, FULL: 0.4}], {T: 10}, domains="bab")
    first, second = group_findings(matrix, lambda question: question.domain, settings.evaluation)
    assert (first.name, first.winner, first.tied, first.questions) == ("a", T, 1, 1)
    assert first.margin is not None
    assert second.margin is not None
    assert first.margin.mean == pytest.approx(0.1)
    assert (second.name, second.winner, second.questions, second.episodes) == ("b", S, 2, 2)
    assert (second.winning_score, second.full_score) == (pytest.approx(0.4), pytest.approx(0.3))
    assert second.margin.mean == pytest.approx(0.1)


def test_the_margin_is_paired_over_questions_scored_under_both(settings: Settings) -> None:
    (group,) = group_findings(
        small_matrix([{S: 0.9, FULL: np.nan}, {S: 0.5, FULL: 0.4}]), lambda question: question.domain, settings.evaluation
    )
    assert group.margin is not None
    assert group.margin.mean == pytest.approx(0.1)


def test_the_best_few_and_the_full_subset_have_intervals(settings: Settings) -> None:
    """Each of two episodes is drawn twice, once and once, or not at all: the means lie between the two scores."""
    matrix = small_matrix([{S: 0.6, FULL: 0.2}, {S: 0.2, FULL: 0.1}])
    (group,) = group_findings(matrix, lambda question: question.domain, settings.evaluation)
    assert group.best[:2] == (S, FULL)
    found = group.intervals[S]
    assert (found.low, found.mean, found.high, found.clusters) == (0.2, pytest.approx(0.4), 0.6, 2)
    assert group.margin is not None
    assert (group.margin.low, group.margin.high) == (pytest.approx(0.1), pytest.approx(0.4))


def test_groups_without_name_or_score_are_left_out(settings: Settings) -> None:
    matrix = small_matrix([dict.fromkeys(subsets.ALL_SUBSETS, np.nan), {S: 0.5}], domains="ab")
    assert [group.name for group in group_findings(matrix, lambda question: question.domain, settings.evaluation)] == ["b"]
    assert group_findings(matrix, lambda question: question.qa_type, settings.evaluation) == ()


def test_seeds_weigh_the_same_whatever_their_size() -> None:
    one, two = small_matrix([{S: 1.0}]), small_matrix([{S: 0.0}, {S: 0.0}, {S: 0.0}])
    found = {f.mask: f for f in mean_subset_findings([one, two])}
    assert (found[S].score, found[S].scored) == (0.5, 4)
