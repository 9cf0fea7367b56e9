"""Choosing among more steps than evidence may hold."""

import numpy as np

from mesa_pipeline.structures.step_selection import select_steps


def test_half_is_nearest_the_anchor_and_half_likest_the_question() -> None:
    scores = np.zeros(100)
    scores[[10, 20, 95]] = [1.0, 2.0, 3.0]
    assert select_steps(set(range(91)), set(), [90], scores, 4) == [10, 20, 89, 90]


def test_without_likeness_nearness_takes_the_whole_room() -> None:
    assert select_steps(set(range(50)), set(), [0], np.zeros(50), 3) == [0, 1, 2]


def test_steps_named_one_by_one_come_first() -> None:
    assert select_steps(set(range(50)), {5, 7}, [49], np.zeros(50), 3) == [5, 7, 49]
    assert select_steps(set(range(50)), set(range(10)), [49], np.zeros(50), 3) == [7, 8, 9]


def test_ties_in_likeness_go_to_the_earlier_step() -> None:
    assert select_steps(set(range(9)), set(), [8], np.ones(9), 4) == [0, 1, 7, 8]


def test_the_nearest_of_several_anchors_counts() -> None:
    assert select_steps(set(range(100)), set(), [10, 90], np.zeros(100), 2) == [10, 90]
