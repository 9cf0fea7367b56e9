"""What each subset may be expected to be worth for a question, for choosing among those that fit a token budget.

The expectation is the mean over the training questions with the same labels, shrunk towards wider groups; a question without
labels gets the mean of all. Other observable features (form of the question, sizes of the evidence, length of the trajectory)
were measured and left out: see docs/decisions/0093-token-budget.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, PolicyInput
from mesa_pipeline.policies.estimates import relative_utilities
from mesa_pipeline.policies.label_cells import cell_of, estimate_cells
from mesa_pipeline.subsets import ALL_SUBSETS

SCORE_DIGITS = 9
"""Expected scores are kept to this many decimals: summation order must not show."""


@dataclass(frozen=True)
class ValueModel:
    """Expected scores of all subsets by label cell, and the price of a token.

    Attributes:
        lambda_: Price of one evidence token, in score.
        keys: Labels that tell cells apart.
        values: Their values seen in training.
        scores: The 31 expected scores of each cell, relative to a question's own average; cells as JSON, ``None`` for a
            subset that was never scored.
    """

    lambda_: float
    keys: tuple[str, ...]
    values: Mapping[str, Sequence[str]]
    scores: Mapping[str, Sequence[float | None]]

    def worth(self, question: PolicyInput, tokens: np.ndarray) -> np.ndarray:
        """Expected score minus token price of every subset, up to a constant of the question.

        Args:
            question: The question; labels that are unknown are left open.
            tokens: Shape ``(31,)``, evidence tokens of each subset for this very question.

        Returns:
            Shape ``(31,)``, higher is better; minus infinity for a subset that was never scored in training. Column
            ``mask - 1`` belongs to ``mask``.
        """
        scores = self.scores[dump_json(cell_of(question, self.keys, self.values))]
        expected = np.array([-np.inf if score is None else score for score in scores])
        worth: np.ndarray = expected - self.lambda_ * tokens
        return worth

    def to_json(self) -> dict[str, Any]:
        return {"lambda": self.lambda_, "keys": list(self.keys), "values": dict(self.values), "scores": dict(self.scores)}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Inverse of ``to_json``.

        Raises:
            ArtifactError: It is not a value model.
        """
        try:
            model = cls(float(value["lambda"]), tuple(value["keys"]), value["values"], value["scores"])
            complete = dump_json([None] * len(model.keys)) in model.scores and set(model.keys) == set(model.values)
            if not complete or any(len(scores) != len(ALL_SUBSETS) for scores in model.scores.values()):
                raise ValueError("cells or subsets are missing")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"not a model of expected values ({error!r}); make one with `mesa optimize`") from error
        return model


def fit_values(train: OutcomeMatrix, keys: Sequence[str], context: FitContext) -> ValueModel:
    """Learn from training outcomes alone; equal outcomes, in any order of questions, give an equal model.

    Args:
        train: Outcomes of the training questions.
        keys: Labels that tell cells apart, such as ``domain`` and ``qa_type``.
        context: Token price, and how strongly cells lean on wider ones.

    Raises:
        ArtifactError: Some training cells were never swept, or none has a score.
    """
    table = estimate_cells(train, keys, relative_utilities(train, 0.0), context.shrinkage)
    scores = {dump_json(cell): _plain(found.utilities) for cell, found in table.estimates.items()}
    return ValueModel(context.lambda_, tuple(keys), table.values, scores)


def _plain(utilities: np.ndarray) -> list[float | None]:
    return [round(float(value), SCORE_DIGITS) if np.isfinite(value) else None for value in utilities]
