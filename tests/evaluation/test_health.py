"""Whether a champion got worse, worked by hand."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.health import Health, Shown, health_of
from mesa_pipeline.evaluation.showing import Showing

PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"
RULE = load_settings(PARAMS, environment={}).nightly.model_copy(update={"confidence": 0.95, "min_episodes": 4, "growth": 0.5})


def showing(scores: dict[str, float], domain: str = "d") -> Showing:
    """One question an episode, both named alike."""
    ids = np.array(list(scores), dtype=object)
    domains = np.array([domain] * len(ids), dtype=object)
    return Showing(ids, ids, domains, np.array(list(scores.values()), dtype=float), np.zeros(len(ids)))


def shown(policy: dict[str, float], everything: float | dict[str, float] = 0.5) -> Shown:
    of_all = everything if isinstance(everything, dict) else dict.fromkeys(policy, everything)
    return Shown(showing(policy), showing(of_all))


THEN = {"a": 0.5, "b": 0.6, "c": 0.5, "d": 0.6, "e": 0.5}
SAME = frozenset("abcde")


def health(now: Shown, then: Shown, unchanged: frozenset[str] = SAME) -> Health:
    return health_of(now, then, unchanged, 0.0, RULE)


def test_a_champion_on_the_same_outcomes_is_as_it_was():
    found = health(shown(THEN), shown(THEN))
    assert found.worse == ()
    assert found.same_questions is not None
    assert (found.same_questions.low, found.same_questions.high) == (0.0, 0.0)
    assert found.new_questions is None


def test_worse_outcomes_on_the_same_questions_are_noticed():
    now = {"a": 0.3, "b": 0.42, "c": 0.29, "d": 0.4, "e": 0.31}
    found = health(shown(now, 0.2), shown(THEN))
    assert found.worse == ("than when it was crowned, on the same questions",)
    assert found.same_questions is not None
    assert found.same_questions.mean == pytest.approx((-0.2 - 0.18 - 0.21 - 0.2 - 0.19) / 5)
    assert found.same_questions.confidence == pytest.approx(1 - 0.05 / 3)


def test_a_fall_below_reading_all_five_is_noticed():
    found = health(shown(THEN, 0.9), shown(THEN, 0.5))
    assert found.worse == ("than reading all five structures",)


def test_new_questions_are_compared_with_those_of_then_and_not_with_themselves():
    new = {"f": 0.1, "g": 0.11, "h": 0.1, "i": 0.11}
    found = health(shown(THEN | new, {**dict.fromkeys(THEN, 0.5), **dict.fromkeys(new, 0.05)}), shown(THEN))
    assert found.worse == ("on new or changed questions than on those of when it was crowned",)
    assert found.new_questions is not None
    assert found.new_questions.mean == pytest.approx(0.105 - 0.54)
    assert found.all_on_new_questions is not None
    assert found.all_on_new_questions.mean == pytest.approx(0.05 - 0.5)


def test_questions_of_a_changed_episode_are_new():
    found = health(shown(THEN | {"e": 0.0}), shown(THEN), SAME - {"e"})
    assert found.same_questions is not None
    assert (found.same_questions.clusters, found.same_questions.mean) == (4, 0.0)
    assert found.new_questions is not None
    assert found.new_questions.clusters == 1


def test_too_few_episodes_are_never_called_worse():
    three = {"a": 0.1, "b": 0.2, "c": 0.1}
    assert health(shown(three, 0.9), shown(three, 0.1)).worse == ()


def test_unscored_questions_are_left_out():
    found = health(shown(THEN | {"a": np.nan}), shown(THEN))
    assert found.same_questions is not None
    assert found.same_questions.clusters == 4


def test_domains_are_told_apart():
    now = Shown(
        Showing(*(np.array(x, dtype=object) for x in (["a", "b"], ["a", "b"], ["x", "y"])), np.array([0.1, 0.9]), np.zeros(2)),
        Showing(*(np.array(x, dtype=object) for x in (["a", "b"], ["a", "b"], ["x", "y"])), np.array([0.5, 0.5]), np.zeros(2)),
    )
    found = health(now, now)
    assert [(domain.domain, domain.worth) for domain in found.domains] == [("x", 0.1), ("y", 0.9)]


def test_an_empty_evening_has_nothing_to_say():
    found = health(shown({}), shown({}))
    assert (found.versus_all, found.same_questions, found.new_questions, found.domains) == (None, None, None, ())
    assert Health.from_json(asdict(found)) == found


def test_what_is_remembered_is_read_back_as_it_was():
    found = health(shown(THEN | {"f": 0.2}), shown(THEN))
    assert Health.from_json(asdict(found)) == found
    then = shown(THEN | {"g": np.nan})
    assert Shown.from_json(then.to_json()).to_json() == then.to_json()
