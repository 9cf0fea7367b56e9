"""Requests to try proposers on, and what stands outside the fences of a prompt."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.failures import Effect, FailureCard
from mesa_pipeline.evaluation.observables import Condition, Predicate
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.search.directions import DIRECTIONS
from mesa_pipeline.search.proposers import ProposalRequest
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics, Rejection

REPOSITORY = Path(__file__).resolve().parents[3]
SETTINGS = load_settings(REPOSITORY / "params.yaml", environment={})
SOURCE = """META = {"direction": "lexical-rules", "hypothesis": "Counts need less.", "parents": []}


def select(state, q):
    return ["S"] if "how many" in q["question"].lower() else ["S", "V"]
"""
ASKED = "which canary question of the training split is this"


def evaluation(objective: float, tokens: float = 9000.0) -> Evaluation:
    return Evaluation("p", "executable", 12, objective + 1e-6 * tokens, tokens, 2.0, objective, 0)


def entry(id: str, objective: float, **changes: Any) -> ArchiveEntry:
    """A valid candidate, worth a little more on train than on validation."""
    plain = ArchiveEntry(
        id=id,
        iteration=1,
        slot="explore",
        direction="lexical-rules",
        parents=("all",),
        hypothesis="Counts need less.",
        source=SOURCE,
        train=evaluation(objective + 0.01),
        validation=evaluation(objective),
        behaviour=f"behaviour of {id}",
    )
    return replace(plain, **changes)


def card(**changes: Any) -> FailureCard:
    plain = FailureCard(
        predicate=Predicate((Condition("asks_how_many", "=", True),)),
        description="the question asks for a count",
        questions=31,
        episodes=9,
        mean_regret=0.2,
        better_subset=3,
        gain=0.05,
        gain_error=0.02,
        beyond_luck=False,
        missing=(Effect("T", 0.04, 20),),
        harmful=(),
        examples=("How many doors were opened?",),
    )
    return replace(plain, **changes)


def training(domain: str = "Game", text: str = ASKED) -> OutcomeMatrix:
    questions = tuple(
        QuestionInfo(f"canary-question-id-{k}", f"canary-episode-id-{k % 2}", f"{text} {k}", domain, "task", "A", 10 + k)
        for k in range(4)
    )
    return OutcomeMatrix(questions, np.full((4, 31), 0.5), np.full((4, 31), 1000.0))


def request(**changes: Any) -> ProposalRequest:
    """The repair slot of a search that has a few policies of two directions and one rejection."""
    best = entry("02-exploit", 0.31)
    plain = ProposalRequest(
        iteration=3,
        slot="repair",
        direction=DIRECTIONS["lexical-rules"],
        parent=best,
        archive=(
            entry("all", 0.2, iteration=0, slot=None, direction=None, parents=()),
            entry("01-explore", 0.25, direction="analogy"),
            best,
        ),
        rejections=(Rejection("01-repair", 1, "lexical-rules", "gate: line 3, column 1: imports are refused", None, SOURCE),),
        arms=(ArmStatistics("lexical-rules", 1, 0.31, 0.06, 1, 0), ArmStatistics("analogy", 1, 0.25, 0.06)),
        cards=(card(),),
        train=training(),
        context=FitContext(1e-6, 20.0, 0),
        seed=77,
    )
    return replace(plain, **changes)


def outside_fences(prompt: str) -> str:
    """What a reader of Markdown takes for the prompt's own words."""
    kept: list[str] = []
    fence = ""
    for line in prompt.split("\n"):
        found = re.fullmatch(r" {0,3}(`{3,})([^`]*)", line)
        if not fence:
            fence = found[1] if found else ""
            kept.append("(data)" if found else line)
        elif found and len(found[1]) >= len(fence) and not found[2].strip():
            fence = ""
    return "\n".join(kept)
