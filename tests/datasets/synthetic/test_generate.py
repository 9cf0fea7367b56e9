"""The generator as a source of episodes: reproducible, of the size asked for, and in the shape of the data model."""

import dataclasses
import hashlib
import os
import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline.config import Settings, SyntheticSettings
from mesa_pipeline.datasets import synthetic
from mesa_pipeline.datasets.synthetic import design_episode
from mesa_pipeline.types import Episode

DIGEST = """
import hashlib
from mesa_pipeline.config import SyntheticSettings
from mesa_pipeline.datasets.synthetic import design_episode
settings = SyntheticSettings(seed=3, episodes=12, steps=40, questions=12)
made = repr([design_episode(settings, number).episode for number in range(12)])
print(hashlib.sha256(made.encode()).hexdigest())
"""


def load(settings: Settings, **changes: int) -> tuple[Episode, ...]:
    datasets = settings.datasets.model_copy(update={"synthetic": settings.datasets.synthetic.model_copy(update=changes)})
    return synthetic.load(None, datasets, skip_invalid=False).episodes


def test_defaults_cover_every_domain_with_two_task_types(settings: Settings) -> None:
    episodes = load(settings)
    assert len(episodes) == settings.datasets.synthetic.episodes
    assert all(len(episode.questions) == settings.datasets.synthetic.questions for episode in episodes)
    strata = {(episode.domain, episode.task_type) for episode in episodes}
    assert len({domain for domain, _ in strata}) >= 4
    assert len(strata) == 2 * len({domain for domain, _ in strata})


def test_ids_and_indices_follow_the_data_model(settings: Settings) -> None:
    episodes = load(settings)
    assert episodes[3].id == "synthetic-0003"
    assert len({episode.id for episode in episodes}) == len(episodes)
    for episode in episodes:
        assert episode.trajectory.id == episode.id
        assert [step.index for step in episode.trajectory.steps] == list(range(len(episode.trajectory.steps)))
        assert [question.id for question in episode.questions] == [f"{episode.id}#{k}" for k in range(len(episode.questions))]
        assert not any(step.is_empty for step in episode.trajectory.steps)


def test_question_types_come_in_the_benchmarks_mix(settings: Settings) -> None:
    counts = Counter(question.qa_type for episode in load(settings) for question in episode.questions)
    episodes = settings.datasets.synthetic.episodes
    assert counts == {
        "recall": 4 * episodes,
        "causal": 3 * episodes,
        "state-updating": 3 * episodes,
        "abstraction": 2 * episodes,
    }


def test_an_episode_does_not_depend_on_how_many_there_are(settings: Settings) -> None:
    assert load(settings, episodes=20)[:6] == load(settings, episodes=6)


def test_another_seed_gives_other_episodes(settings: Settings) -> None:
    first, second = load(settings, episodes=6, seed=1), load(settings, episodes=6, seed=2)
    assert all(one.trajectory.steps != other.trajectory.steps for one, other in zip(first, second, strict=True))


def test_the_number_of_questions_leaves_the_trajectory_alone(settings: Settings) -> None:
    few, many = load(settings, episodes=6, questions=1), load(settings, episodes=6, questions=30)
    assert [episode.trajectory for episode in few] == [episode.trajectory for episode in many]


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_bytes_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    made = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
    settings = SyntheticSettings(seed=3, episodes=12, steps=40, questions=12)
    here = repr([design_episode(settings, number).episode for number in range(12)])
    assert made.stdout.strip() == hashlib.sha256(here.encode()).hexdigest()


@given(steps=st.integers(10, 400), seed=st.integers(0, 10**6), number=st.integers(0, 50))
@hypothesis_settings(max_examples=40, deadline=None)
def test_length_stays_within_half_and_one_and_a_half_of_the_mean(steps: int, seed: int, number: int) -> None:
    length = len(design_episode(SyntheticSettings(seed=seed, episodes=1, steps=steps, questions=1), number).history)
    assert max(10, round(0.5 * steps)) <= length <= max(10, round(1.5 * steps))


@pytest.mark.parametrize("number", range(6))
def test_a_long_episode_never_falls_into_a_cycle(number: int) -> None:
    history = design_episode(SyntheticSettings(seed=0, episodes=1, steps=6000, questions=4), number).history
    tail = history.steps[-500:]
    earlier = {(step.action, step.observation) for step in history.steps[:-500]}
    fresh = sum((step.action, step.observation) not in earlier for step in tail)
    assert fresh > 150


def test_generation_is_fast_enough_to_scale() -> None:
    """Generous: 20,000 steps take about half a second on one core; quadratic work would take minutes."""
    started = time.perf_counter()
    design_episode(SyntheticSettings(seed=0, episodes=1, steps=20_000, questions=12), 1)
    assert time.perf_counter() - started < 20


def test_an_episode_shows_no_design(settings: Settings) -> None:
    for episode in load(settings, episodes=6):
        assert {field.name for field in dataclasses.fields(episode)} == {
            "id",
            "dataset",
            "domain",
            "task_type",
            "trajectory",
            "questions",
        }
        assert all(kind.name not in repr(episode) for kind in synthetic.KINDS)
