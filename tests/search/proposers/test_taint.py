"""What validation outcomes can and cannot change in a search whose proposer is a language model."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.llm import Message
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.directions import open_directions
from mesa_pipeline.search.loop import Search
from mesa_pipeline.search.proposers.llm import LlmProposer
from mesa_pipeline.search.store import SearchStore

N = 24
READ = ("S", "V", "T", "R", "G")


@pytest.fixture(scope="module")
def sandbox(settings: Settings) -> Iterator[Sandbox]:
    with Sandbox(settings.policies.sandbox) as sandbox:
        yield sandbox


def single(messages: tuple[Message, ...], seed: int) -> str:
    """A policy that reads one structure, whichever the conversation's seed says."""
    code = READ[seed % len(READ)]
    return (
        f'```python\nMETA = {{"direction": "free", "hypothesis": "{code} suffices.", "parents": []}}\n\n\n'
        f'def select(state, q):\n    return ["{code}"]\n```'
    )


def matrix(split: str) -> OutcomeMatrix:
    """Outcomes in quarters, so that no order of summation can change a mean."""
    rng = np.random.default_rng(len(split))
    questions = tuple(
        QuestionInfo(f"{split}-{k}", f"{split}-e{k % 4}", f"What of {split} {k}?", "D", "t", "A", 9) for k in range(N)
    )
    return OutcomeMatrix(questions, rng.integers(0, 5, (N, 31)) / 4, np.full((N, 31), 1024.0))


def asked(
    train: OutcomeMatrix, validation: OutcomeMatrix, settings: Settings, sandbox: Sandbox, folder: Path
) -> tuple[str, ...]:
    """Every word that the model is asked in a search of four iterations."""
    model = ScriptedModel(single)
    search = Search(
        data=SearchData.of(train, validation, FitContext.of(settings, 0)),
        store=SearchStore(folder),
        proposer=LlmProposer(model, settings.search.llm, settings.policies.sandbox),
        directions=open_directions(None),
        sandbox=sandbox,
        settings=settings.search.model_copy(update={"iterations": 4}),
    )
    search.run()
    return tuple(message.content for messages in model.asked for message in messages)


def test_validation_reaches_a_prompt_as_means_alone(settings, sandbox, tmp_path):
    train, validation = matrix("train"), matrix("val")
    before = asked(train, validation, settings, sandbox, tmp_path / "before")

    shuffled = np.random.default_rng(1).permutation(N)
    scores = validation.scores[shuffled].copy()
    never_read = [mask - 1 for mask in range(1, 31) if mask.bit_count() > 1]
    scores[:, never_read] = 1.0 - scores[:, never_read]
    others = tuple(replace(question, id=f"other-{question.id}", text="Another?") for question in validation.questions)
    after = asked(train, OutcomeMatrix(others, scores, validation.tokens), settings, sandbox, tmp_path / "after")

    assert len(before) == 2 * 12
    assert after == before


def test_a_mean_on_validation_does_reach_it(settings, sandbox, tmp_path):
    train, validation = matrix("train"), matrix("val")
    before = asked(train, validation, settings, sandbox, tmp_path / "before")
    lower = OutcomeMatrix(validation.questions, validation.scores / 2, validation.tokens)
    assert asked(train, lower, settings, sandbox, tmp_path / "lower") != before
