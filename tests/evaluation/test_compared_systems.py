"""Systems side by side, against figures worked by hand on six questions."""

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.compared_systems import Retrieval, compare_systems
from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.system_standings import standings_of
from tests.evaluation.comparisons import named, result, two_tests


def test_what_retrieval_asked_is_counted_for_the_structures_read(six_questions):
    prompts = np.zeros((6, 5))
    prompts[:, 1] = 40.0  # T's check
    retrieval = Retrieval(prompts, (prompts > 0).astype(float))
    found = named(standings_of(compare_systems(two_tests(), six_questions, [], retrieval)))
    assert found["S"].query_tokens.mean == 1000.0
    assert found["T"].query_tokens.mean == 1040.0
    assert found["random"].calls.mean == pytest.approx(16 / 31)
    assert found[FROZEN_ROW].calls.mean == pytest.approx((0.5 + 1) / 2)


def test_what_is_not_known_of_a_structure_is_not_known_of_its_subsets(six_questions):
    prompts = np.zeros((6, 5))
    prompts[:, 4] = np.nan
    found = named(standings_of(compare_systems(two_tests(), six_questions, [], Retrieval(prompts, prompts))))
    assert found["S"].query_tokens.mean == 1000.0
    assert found["R"].query_tokens is found["all"].query_tokens is None


def test_one_seed_alone(six_questions):
    found = named(standings_of(compare_systems(two_tests(), six_questions, []).only([1])))
    assert found[FROZEN_ROW].score == (1.0, None, 1)


def test_rows_that_a_test_did_not_keep_are_left_out(six_questions):
    comparison = compare_systems([result(0, {"w1#3": 2}, kept=False)], six_questions, [])
    assert [system.code for system in comparison.systems] == ["random", FROZEN_ROW]


def test_mistakes_are_told(six_questions):
    with pytest.raises(ArtifactError, match="mesa test"):
        compare_systems([], six_questions, [])
    with pytest.raises(ArtifactError, match="mesa sweep"):
        compare_systems([result(2, {"gone#0": 1})], six_questions, [])
