"""What each subset may be expected to score for a question: the means of training questions like it, shrunk."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, PolicyInput
from mesa_pipeline.policies.estimates import global_means, relative_utilities


@dataclass(frozen=True)
class ValueModel:
    """Expected score of every subset, relative to the question's own average; higher is better."""

    means: tuple[float, ...]

    def expected(self, question: PolicyInput) -> np.ndarray:
        """Shape ``(31,)``; column ``mask - 1`` belongs to ``mask``."""
        return np.array(self.means)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``."""
        return cls(tuple(value["means"]))


def fit_values(train: OutcomeMatrix, context: FitContext) -> ValueModel:
    """Learn from training outcomes alone.

    Raises:
        ArtifactError: Some training cells were never swept, or none has a score.
    """
    return ValueModel(tuple(global_means(relative_utilities(train, 0.0)).tolist()))
