"""Made-up tables in which the right subset depends on one thing that can be seen, and a way to run sources on them.

Sources run here with the worker's own globals but in this process, which is fast; ``tests/search/proposers/test_template.py``
runs them in the sandbox.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.policies.sandbox.facades import load_ml, policy_globals

Question = dict[str, Any]
CONTEXT = {
    "structures": list(subsets.STRUCTURE_CODES),
    "subsets": [list(subsets.decode(mask)) for mask in subsets.ALL_SUBSETS],
    "lambda": 1e-6,
    "shrinkage": 20.0,
    "max_structures": 5,
    "seed": 0,
}
EPISODES = 12
PER_EPISODE = 12
_WORDS = {"kitchen": "shelf drawer kettle stove cupboard spoon", "court": "verdict witness clause appeal ruling statute"}
_ASKS = ("What was seen", "Which object moved", "What did the agent find")


@cache
def _ml() -> ModuleType:
    return load_ml()


def run(source: str, rows: Sequence[Question], questions: Sequence[Question], **context: Any) -> list[list[str]]:
    """Choices of a policy, its state having gone through JSON."""
    names = policy_globals(_ml())
    exec(compile(source, "policy", "exec"), names)
    state = json.loads(json.dumps(names["fit"](list(rows), {**CONTEXT, **context}), allow_nan=False))
    return [names["select"](state, question) for question in questions]


def preview(text: str = "", **changes: Any) -> dict[str, Any]:
    plain = {"text": text, "n_items": 3, "tokens": 900, "top_score": 1.0, "scores": [1.0, 0.5], "step_ids": [1, 2]}
    return {**plain, **changes}


def question(episode: int, k: int) -> Question:
    """A question of an episode; even episodes are one kind, odd ones another, and k tells questions apart within them."""
    kind = ("kitchen", "court")[episode % 2]
    asks = _ASKS[k % 3]
    text = f"{asks} {'at step ' + str(k) if k % 2 else 'there'}{' and how many' if k % 4 > 1 else ''}?"
    shown = "seen found" if k % 3 == 0 else "nothing"
    previews = {code: preview(f"{_WORDS[kind]} of {code}") for code in subsets.STRUCTURE_CODES}
    previews["G"] = preview(shown, n_items=0 if k % 3 else 8, top_score=None if k % 3 else 4.0, scores=[])
    return {"question": text, "meta": {"domain": kind, "qa_type": "recall"}, "steps": 40, "previews": previews}


def rows(best: Callable[[Question], str], seed: int = 0, noise: float = 0.1, episodes: int = EPISODES) -> list[Question]:
    """Training rows: the subset ``best`` names for a question scores 0.4 more than the others, which all score alike."""
    rng = np.random.default_rng(seed)
    made = []
    for episode in range(episodes):
        for k in range(PER_EPISODE):
            asked = question(episode, k)
            right = subsets.encode(best(asked))
            scores = 0.3 + 0.4 * (np.arange(1, 32) == right) + rng.normal(0, noise, 31)
            tokens = [900 * subsets.size(mask) for mask in subsets.ALL_SUBSETS]
            made.append({**asked, "y": scores.tolist(), "tok": tokens, "group": episode})
    return made


def unseen(count: int = 2) -> list[Question]:
    """Questions of episodes that are not among the training rows."""
    return [question(episode, k) for episode in range(100, 100 + count) for k in range(PER_EPISODE)]


def share_right(choices: Sequence[Sequence[str]], questions: Sequence[Question], best: Callable[[Question], str]) -> float:
    """Share of questions for which the subset chosen is the right one."""
    right = [set(chosen) == set(best(asked)) for chosen, asked in zip(choices, questions, strict=True)]
    return sum(right) / len(right)
