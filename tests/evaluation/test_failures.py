"""Failure cards: a planted weakness is found, noise is not called a finding, and nothing hidden shows."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.evaluation.clusters import MAX_OVERLAP, MIN_QUESTIONS
from mesa_pipeline.evaluation.failures import EXAMPLE_CHARS, MAX_EXAMPLES, FailureCard, failure_cards
from mesa_pipeline.evaluation.observables import observable_features
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.policies.base import policy_input
from mesa_pipeline.subsets import ALL_SUBSETS, FULL_SUBSET, encode
from mesa_pipeline.types import Preview

TEXTS = ("Why did it stop at step {k}?", "What was read at step {k}?", "List every action.", "Who came to the door?")
TEMPORAL, RAW = encode("T"), encode("R")


def questions(episodes: int = 18, per_episode: int = 12) -> tuple[QuestionInfo, ...]:
    return tuple(
        QuestionInfo(
            id=f"episode-{e}#{q}",
            episode_id=f"episode-{e}",
            text=TEXTS[q % 4].format(k=q),
            domain=("Game", "WEB", "SECRET")[e % 3],
            task_type="task",
            qa_type=("recall", "causal")[q // 6],
            steps=20 + 3 * e,
            previews={"G": Preview("", 0 if e % 2 else 4, 0, None, (), ())},
        )
        for e in range(episodes)
        for q in range(per_episode)
    )


def noisy(infos: Sequence[QuestionInfo], seed: int, spread: float = 0.1) -> np.ndarray:
    return 0.4 + spread * np.random.default_rng(seed).standard_normal((len(infos), 31))


def table(infos: Sequence[QuestionInfo], scores: np.ndarray) -> OutcomeMatrix:
    return OutcomeMatrix(tuple(infos), np.clip(scores, 0, 1), np.full(scores.shape, 100.0))


def reading(mask: int) -> list[int]:
    return [subset - 1 for subset in ALL_SUBSETS if subset & mask]


def members(card: FailureCard, matrix: OutcomeMatrix, labels: bool = True) -> np.ndarray:
    return np.array([card.predicate.holds(observable_features(policy_input(q, labels))) for q in matrix.questions])


def test_finds_a_planted_cluster_and_the_structure_it_misses() -> None:
    infos = questions()
    scores = noisy(infos, 1)
    planted = np.array([q.text.startswith("Why") for q in infos])
    scores[np.ix_(planted, reading(TEMPORAL))] += 0.3
    matrix = table(infos, scores)
    card = failure_cards(matrix, np.full(len(infos), RAW), 0.0, 5, labels=True)[0]
    np.testing.assert_array_equal(members(card, matrix), planted)
    assert card.description == "the question asks for a reason"
    assert card.beyond_luck
    assert card.better_subset & TEMPORAL
    assert card.missing[0].structure == "T"
    assert card.missing[0].gain == pytest.approx(0.3, abs=0.05)
    assert card.gain == pytest.approx(0.3, abs=0.05)
    assert (card.questions, card.episodes) == (planted.sum(), 18)
    assert not any(effect.structure == "R" for effect in card.missing)


def test_finds_a_structure_that_harms() -> None:
    infos = questions()
    scores = noisy(infos, 2)
    planted = np.array([q.domain == "WEB" for q in infos])
    scores[np.ix_(planted, reading(RAW))] -= 0.3
    card = failure_cards(table(infos, scores), np.full(len(infos), FULL_SUBSET), 0.0, 5, labels=True)[0]
    assert card.description == "the domain is WEB"
    assert card.harmful[0].structure == "R"
    assert card.missing == ()


def test_finds_a_pair_of_conditions() -> None:
    infos = questions(episodes=24)
    scores = noisy(infos, 3, spread=0.03)
    planted = np.array([q.text.startswith("Why") and q.previews["G"].n_items == 0 for q in infos])
    scores[np.ix_(planted, reading(TEMPORAL))] += 0.4
    matrix = table(infos, scores)
    card = failure_cards(matrix, np.full(len(infos), RAW), 0.0, 5, labels=True)[0]
    np.testing.assert_array_equal(members(card, matrix), planted)
    assert len(card.predicate.conditions) == 2


def test_the_token_price_alone_can_make_a_subset_better() -> None:
    infos = questions()
    matrix = table(infos, np.full((len(infos), 31), 0.5))
    tokens = matrix.tokens.copy()
    tokens[:, reading(RAW)] = 20_000.0
    (card, *_) = failure_cards(
        dataclasses.replace(matrix, tokens=tokens), np.full(len(infos), FULL_SUBSET), 1e-6, 5, labels=True
    )
    assert card.harmful[0].structure == "R"
    assert card.harmful[0].gain == pytest.approx(0.0199)


def test_of_pure_noise_hardly_any_card_is_called_beyond_luck() -> None:
    infos = questions()
    tables = [table(infos, noisy(infos, seed)) for seed in range(20)]
    found = [failure_cards(matrix, np.full(len(infos), FULL_SUBSET), 0.0, 5, labels=True) for matrix in tables]
    assert sum(any(card.beyond_luck for card in cards) for cards in found) <= 2


def test_nothing_lost_gives_no_card() -> None:
    infos = questions()
    scores = np.full((len(infos), 31), 0.2)
    scores[:, RAW - 1] = 0.9
    assert failure_cards(table(infos, scores), np.full(len(infos), RAW), 0.0, 5, labels=True) == ()


def test_cards_are_large_enough_and_differ() -> None:
    infos = questions()
    matrix = table(infos, noisy(infos, 4))
    cards = failure_cards(matrix, np.full(len(infos), RAW), 0.0, 5, labels=True)
    sets = [members(card, matrix) for card in cards]
    assert 2 <= len(cards) <= 5
    for position, one in enumerate(sets):
        assert one.sum() == cards[position].questions >= MIN_QUESTIONS
        for other in sets[:position]:
            assert (one & other).sum() <= MAX_OVERLAP * (one | other).sum()
    assert failure_cards(matrix, np.full(len(infos), RAW), 0.0, 1, labels=True) == cards[:1]


def test_without_labels_nothing_of_them_shows() -> None:
    infos = questions()
    scores = noisy(infos, 5)
    scores[np.ix_(np.array([q.domain == "SECRET" for q in infos]), reading(TEMPORAL))] += 0.3
    choices = np.full(len(infos), RAW)
    assert "SECRET" in str(failure_cards(table(infos, scores), choices, 0.0, 5, labels=True))
    unlabelled = failure_cards(table(infos, scores), choices, 0.0, 5, labels=False)
    renamed = tuple(dataclasses.replace(q, domain="x", task_type="y", qa_type=None) for q in infos)
    assert failure_cards(table(renamed, scores), choices, 0.0, 5, labels=False) == unlabelled
    assert "SECRET" not in str(unlabelled)


def test_shows_the_questions_with_most_to_gain_shortened_and_printable() -> None:
    hostile = "Why \x00\ud800\u202e\n{braces} " + "very " * 200 + "long?"
    infos = tuple(dataclasses.replace(q, text=hostile) if q.text.startswith("Why") else q for q in questions())
    scores = noisy(infos, 6)
    scores[np.ix_(np.array([q.text == hostile for q in infos]), reading(TEMPORAL))] += 0.4
    card = failure_cards(table(infos, scores), np.full(len(infos), RAW), 0.0, 1, labels=True)[0]
    assert len(card.examples) == MAX_EXAMPLES
    for example in card.examples:
        assert len(example) <= EXAMPLE_CHARS
        assert example.isprintable()
        assert example.startswith("Why ")


def test_the_order_of_the_questions_decides_nothing() -> None:
    infos = questions()
    matrix = table(infos, noisy(infos, 7))
    order = np.random.default_rng(0).permutation(len(infos))
    shuffled = OutcomeMatrix(tuple(infos[k] for k in order), matrix.scores[order], matrix.tokens[order])
    cards = failure_cards(matrix, np.full(len(infos), RAW), 0.0, 5, labels=True)
    again = failure_cards(shuffled, np.full(len(infos), RAW), 0.0, 5, labels=True)
    assert [card.predicate for card in again] == [card.predicate for card in cards]
    assert [card.gain for card in again] == pytest.approx([card.gain for card in cards])


def test_the_hash_seed_decides_nothing() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy as np; from tests.evaluation.test_failures import *;"
        "infos = questions(); print(failure_cards(table(infos, noisy(infos, 8)), np.full(len(infos), RAW), 0.0, 5, True))"
    )
    root = str(Path(__file__).resolve().parents[2])
    printed = {
        subprocess.run(
            [sys.executable, "-c", program, root],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_a_question_with_an_unscored_subset_is_left_out() -> None:
    infos = questions()
    matrix = table(infos, noisy(infos, 9))
    holed = dataclasses.replace(matrix, scores=matrix.scores.copy())
    holed.scores[::5, 3] = np.nan
    keep = np.arange(len(infos)) % 5 != 0
    choices = np.full(len(infos), RAW)
    assert failure_cards(holed, choices, 0.0, 5, True) == failure_cards(matrix.select(keep), choices[keep], 0.0, 5, True)
    holed.scores[:, 3] = np.nan
    assert failure_cards(holed, choices, 0.0, 5, labels=True) == ()


def test_refuses_choices_that_are_none_and_cells_never_swept() -> None:
    infos = questions()
    matrix = table(infos, noisy(infos, 9))
    with pytest.raises(PolicyError, match="expected 216 subsets"):
        failure_cards(matrix, np.zeros(len(infos), dtype=int), 0.0, 5, labels=True)
    matrix.tokens[4, FULL_SUBSET - 1] = np.nan
    with pytest.raises(ArtifactError, match="1 of 216"):
        failure_cards(matrix, np.full(len(infos), FULL_SUBSET), 0.0, 5, labels=True)


def test_predicates_of_cards_are_json() -> None:
    infos = questions()
    for card in failure_cards(table(infos, noisy(infos, 10)), np.full(len(infos), RAW), 0.0, 5, labels=True):
        assert type(card.predicate).from_json(json.loads(json.dumps(card.predicate.to_json()))) == card.predicate
