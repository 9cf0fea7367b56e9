"""Failure cards: where a policy loses, in words a proposer can act on (the repair slot of the search).

A card is a cluster of training questions, described by what can be seen of them before they are answered, on which some other
subset would have been worth more than what the policy chose. It names no reference answer and no single outcome. A card that
is not beyond luck is a hypothesis for the next candidate to try, and no more.
"""

from dataclasses import dataclass

import numpy as np

from mesa_pipeline.evaluation.clusters import Cluster, Gains, find_clusters
from mesa_pipeline.evaluation.evaluate import outcomes_of
from mesa_pipeline.evaluation.observables import Predicate, observable_features
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.estimates import best_subset
from mesa_pipeline.subsets import SINGLE_SUBSETS, STRUCTURE_CODES

MAX_EXAMPLES = 3
EXAMPLE_CHARS = 240
MIN_EFFECT_QUESTIONS = 5
UNPRINTABLE = "\ufffd"


@dataclass(frozen=True)
class Effect:
    """What changing one structure of the chosen subsets would have gained.

    Attributes:
        structure: Code of the structure.
        gain: Mean change of score less token price, over the questions where the change is possible.
        questions: Number of those questions.
    """

    structure: str
    gain: float
    questions: int


@dataclass(frozen=True)
class FailureCard:
    """One cluster of regret; all gains are in score less token price.

    Attributes:
        predicate: Which questions.
        description: The same in plain words.
        questions: Number of training questions.
        episodes: Number of episodes they come from.
        mean_regret: Mean of what each question's own best subset would have been worth more; optimistic.
        better_subset: Mask of the one subset that is worth most on the cluster.
        gain: Mean gain from reading one other subset, chosen and measured on different episodes.
        gain_error: Standard error of ``gain``.
        beyond_luck: Whether the gain stands out from the largest that chance would show among all the predicates tried.
        missing: Structures that were not read and would have gained, most first.
        harmful: Structures that were read and would have gained by their absence, most first.
        examples: Texts of up to three of the questions, shortened.
    """

    predicate: Predicate
    description: str
    questions: int
    episodes: int
    mean_regret: float
    better_subset: int
    gain: float
    gain_error: float
    beyond_luck: bool
    missing: tuple[Effect, ...]
    harmful: tuple[Effect, ...]
    examples: tuple[str, ...]


def failure_cards(
    matrix: OutcomeMatrix, choices: np.ndarray, lambda_: float, limit: int, labels: bool
) -> tuple[FailureCard, ...]:
    """The clusters on which the choices lose most: those beyond luck first, then by gain and size.

    Args:
        matrix: Training outcomes of n questions; those that lack a score under any subset are left out.
        choices: Shape ``(n,)``, the mask the policy chose for each.
        lambda_: Price of one evidence token, in score.
        limit: Most cards to return.
        labels: Whether the benchmark's labels may describe a cluster; without them nothing of them shows.

    Returns:
        At most ``limit`` cards; fewer, or none, where nothing gains more than its standard error.

    Raises:
        PolicyError: The choices are not n masks.
        ArtifactError: A chosen cell was never swept.
    """
    outcomes_of(matrix, choices, "failure cards")
    complete = ~np.isnan(matrix.scores).any(axis=1)
    matrix, choices = matrix.select(complete), choices[complete]
    utilities = matrix.scores - lambda_ * matrix.tokens
    gains = Gains.of(utilities - utilities[np.arange(len(matrix)), choices - 1, np.newaxis], matrix.episode_ids)
    features = [observable_features(question) for question in policy_inputs(matrix, labels)]
    clusters = find_clusters(features, gains, limit)
    return tuple(_card(cluster, matrix, choices, gains.values) for cluster in clusters)


def _card(cluster: Cluster, matrix: OutcomeMatrix, choices: np.ndarray, gains: np.ndarray) -> FailureCard:
    rows = np.flatnonzero(cluster.members)
    inside, chosen = gains[rows], choices[rows]
    better = best_subset(inside.mean(axis=0), matrix.tokens[rows].mean(axis=0))
    most_to_gain = rows[np.argsort(-inside[:, better - 1], kind="stable")]
    return FailureCard(
        predicate=cluster.predicate,
        description=cluster.predicate.words,
        questions=len(rows),
        episodes=len(set(matrix.episode_ids[rows])),
        mean_regret=float(inside.max(axis=1).mean()),
        better_subset=better,
        gain=cluster.gain,
        gain_error=cluster.error,
        beyond_luck=cluster.beyond_luck,
        missing=_effects(inside, chosen, chosen[:, np.newaxis] | np.array(SINGLE_SUBSETS)),
        harmful=_effects(inside, chosen, chosen[:, np.newaxis] & ~np.array(SINGLE_SUBSETS)),
        examples=tuple(_shortened(matrix.questions[row].text) for row in most_to_gain[:MAX_EXAMPLES]),
    )


def _effects(gains: np.ndarray, chosen: np.ndarray, changed: np.ndarray) -> tuple[Effect, ...]:
    """Mean gain of each structure's change, where it is above zero.

    Args:
        gains: Shape ``(m, 31)``.
        chosen: Shape ``(m,)``, masks.
        changed: Shape ``(m, 5)``, the masks with one structure added or left out; 0 or the mask itself where that is no change.
    """
    effects: list[Effect] = []
    for code, masks in zip(STRUCTURE_CODES, changed.T, strict=True):
        possible = (masks != chosen) & (masks > 0)
        if possible.sum() >= MIN_EFFECT_QUESTIONS:
            gain = float(gains[possible, masks[possible] - 1].mean())
            effects += [Effect(code, gain, int(possible.sum()))] if gain > 0 else []
    return tuple(sorted(effects, key=lambda effect: (-effect.gain, effect.structure)))


def _shortened(text: str) -> str:
    """The text on one line, cut, with a mark in the place of what cannot be printed."""
    line = " ".join(text[: 2 * EXAMPLE_CHARS].split())
    shown = "".join(character if character.isprintable() else UNPRINTABLE for character in line)
    return shown if len(shown) <= EXAMPLE_CHARS else shown[: EXAMPLE_CHARS - 1] + "…"
