"""The linear models of the extractive reader and their weights.

``extractive_weights.json`` was made by ``benchmarks/fit_extractive_reader.py``, which says from what; weights are stored by
feature name, so that a feature without one weighs nothing and an unknown name is an error.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.reading import phrases
from mesa_pipeline.reading.features import (
    CITATION_FEATURES,
    CITATION_PRODUCTS,
    FEATURES,
    LEXICON,
    QUESTION_FEATURES,
    UNIT_FEATURES,
    WordTable,
    question_features,
    with_products,
)
from mesa_pipeline.reading.questions import QuestionView

WEIGHTS_FILE = "extractive_weights.json"
LEXICON_PREFIX = "word:"
WORD_WEIGHTS = (*FEATURES, *(LEXICON_PREFIX + word for word in LEXICON))


class AnswerModel:
    """Chances and lengths of answers, from features.

    Args:
        weights: Weights by feature name, for each of ``words``, ``citation``, ``length`` and ``phrases``.
        fitted_on: What data they were fitted on, for every result made with them to say.

    Raises:
        ConfigError: A weight has a name that is no feature.
    """

    def __init__(self, weights: Mapping[str, Mapping[str, float]], fitted_on: str = "nothing") -> None:
        self.fingerprint = fingerprint(weights)
        self.fitted_on = fitted_on
        words = _vector(weights["words"], WORD_WEIGHTS)
        self._words, self._lexicon = words[: len(FEATURES)], np.append(words[len(FEATURES) :], 0.0)
        self._citation = _vector(weights["citation"], CITATION_FEATURES)
        self._length = _vector(weights["length"], QUESTION_FEATURES)
        self._phrases = _vector(weights["phrases"], phrases.FEATURES)

    def word_chances(self, table: WordTable) -> np.ndarray:
        """How likely a good answer has each word, shape ``(words,)``."""
        return _logistic(table.features @ self._words + self._lexicon[table.word_ids])

    def citation_chances(self, units: np.ndarray) -> np.ndarray:
        """How likely a good answer names each unit's step, shape ``(units,)``."""
        features = with_products(units, (*QUESTION_FEATURES, *UNIT_FEATURES), CITATION_PRODUCTS)
        return _logistic(features @ self._citation)

    def expected_words(self, question: QuestionView) -> float:
        """How many words a good answer has, at least one; from the form of the question alone."""
        figures = np.array(list(question_features(question).values()))
        return max(math.exp(min(float(figures @ self._length), 10.0)) - 1.0, 1.0)

    def phrase_scores(self, features: np.ndarray) -> np.ndarray:
        """How good an answer each phrase would be, as log odds, shape ``(phrases,)``."""
        scores: np.ndarray = features @ self._phrases
        return scores


@cache
def load_answer_model() -> AnswerModel:
    """The model that ships with the package."""
    content: dict[str, Any] = json.loads(files("mesa_pipeline.reading").joinpath(WEIGHTS_FILE).read_text(encoding="ascii"))
    return AnswerModel(content["weights"], content["fitted_on"])


def _vector(weights: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise ConfigError(
            f"{WEIGHTS_FILE}: no such features: {', '.join(unknown)}; make it again with benchmarks/fit_extractive_reader.py"
        )
    return np.array([weights.get(name, 0.0) for name in names], dtype=np.float64)


def _logistic(scores: np.ndarray) -> np.ndarray:
    chances: np.ndarray = 1.0 / (1.0 + np.exp(-np.clip(scores, -50.0, 50.0)))
    return chances
