"""Fits the weights of the extractive reader on one half of the development episodes and checks them on the other.

Usage: python benchmarks/fit_extractive_reader.py --workspace DIR [--write]

The workspace must hold the evidence of ``ama_bench`` and ``locomo`` (``mesa sweep`` makes it). Words, citations and lengths are
fitted on agent logs: for every word of a candidate unit, does the reference answer have it. Phrases are fitted on dialogues:
what F1 has the phrase. Every question weighs the same, and is seen with two subsets of structures drawn by a seeded generator.
The models get neither domain nor question type nor the name of the data set.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from reader_cases import Case, read_halves
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

from mesa_pipeline import subsets
from mesa_pipeline.config import ExtractiveSettings, load_settings
from mesa_pipeline.evaluation.metrics import token_f1
from mesa_pipeline.reading import phrases
from mesa_pipeline.reading.answer_model import WEIGHTS_FILE, WORD_WEIGHTS
from mesa_pipeline.reading.features import (
    CITATION_FEATURES,
    CITATION_PRODUCTS,
    LEXICON,
    QUESTION_FEATURES,
    UNIT_FEATURES,
    FeatureBuilder,
    question_features,
    with_products,
)
from mesa_pipeline.reading.passages import words
from mesa_pipeline.reading.questions import QuestionView, view_question
from mesa_pipeline.reading.quoting import Quote
from mesa_pipeline.reading.relevance import Candidate, Material, SectionMemory, find_candidates, gather

SUBSETS = tuple(subsets.encode(codes) for codes in ("STGVR", "STGVR", "S", "T", "V", "R", "G", "ST", "TV", "SR", "RV", "TG"))
SUBSETS_PER_QUESTION = 2
SEED = 0
DECIMALS = 3
KEPT_MISSES = 0.3
OUTPUT = Path(__file__).resolve().parent.parent / "mesa_pipeline" / "reading" / WEIGHTS_FILE


class Reading(NamedTuple):
    """What the reader would look at for one question and subset."""

    question: QuestionView
    material: Material
    candidates: list[Candidate]


class Sample(NamedTuple):
    """Rows of features with what they should say (in [0, 1]) and what each weighs."""

    features: sparse.csr_matrix
    targets: np.ndarray
    weights: np.ndarray


def readings(cases: Sequence[Case], limit: int) -> list[tuple[Case, Reading]]:
    generator = np.random.default_rng(SEED)
    memory = SectionMemory()
    found = []
    for case in cases:
        question = view_question(case.question.text)
        for position in generator.choice(len(SUBSETS), SUBSETS_PER_QUESTION, replace=False):
            sections = case.compose(SUBSETS[position]).sections
            material = gather([memory.index(section.text) for section in sections])
            candidates = find_candidates(question, material, limit)
            if candidates:
                found.append((case, Reading(question, material, candidates)))
    return found


def word_sample(cases: Sequence[Case], limit: int) -> Sample:
    rows, ids, targets, weights = [], [], [], []
    for case, reading in readings(cases, limit):
        reference = set(words(case.question.answer or ""))
        builder = FeatureBuilder(*reading)
        table = builder.words(builder.units())
        hits = [token in reference for candidate in reading.candidates for token in candidate.unit.tokens]
        rows.append(table.features.astype(np.float32))
        ids.append(table.word_ids)
        targets.append(hits)
        weights.append(np.full(len(hits), 1 / len(hits)))
    word_ids = np.concatenate(ids)
    known = np.nonzero(word_ids < len(LEXICON))[0]
    shape = (len(word_ids), len(LEXICON))
    lexicon = sparse.csr_matrix((np.ones(len(known), np.float32), (known, word_ids[known])), shape=shape)
    features = sparse.hstack([sparse.csr_matrix(np.vstack(rows)), lexicon]).tocsr()
    return Sample(features, np.concatenate(targets).astype(float), np.concatenate(weights))


def citation_sample(cases: Sequence[Case], limit: int) -> Sample:
    rows, targets = [], []
    for case, reading in readings(cases, limit):
        reference = set(words(case.question.answer or ""))
        units = FeatureBuilder(*reading).units()
        features = with_products(units, (*QUESTION_FEATURES, *UNIT_FEATURES), CITATION_PRODUCTS)
        seen: set[int] = set()
        for candidate, row in zip(reading.candidates, features, strict=True):
            step = next(iter(candidate.unit.source.steps), None)
            if step is not None and step not in seen:
                seen.add(step)
                rows.append(row)
                targets.append(float(str(step) in reference))
    return Sample(sparse.csr_matrix(np.array(rows)), np.array(targets), np.ones(len(targets)))


def phrase_sample(cases: Sequence[Case], limit: int) -> Sample:
    generator = np.random.default_rng(SEED)
    rows, targets, weights = [], [], []
    for case, reading in readings([case for case in cases if not view_question(case.question.text).asks_when], limit):
        builder = FeatureBuilder(*reading)
        table = phrases.find_phrases(reading.question, reading.candidates, builder, builder.units())
        texts = [Quote(reading.candidates[number].unit, span).text for number, span in table.phrases]
        scores = np.array([token_f1("locomo", text, case.question.answer or "", case.question.qa_type) for text in texts])
        kept = (scores > 0) | (generator.random(len(scores)) < KEPT_MISSES)
        rows.append(table.features[kept])
        targets.append(scores[kept])
        weights.append(np.where(scores[kept] > 0, 1.0, 1 / KEPT_MISSES) / max(len(scores), 1))
    return Sample(sparse.csr_matrix(np.vstack(rows)), np.concatenate(targets), np.concatenate(weights))


def fit_logistic(name: str, names: Sequence[str], train: Sample, check: Sample, strength: float) -> dict[str, float]:
    """Logistic regression on targets in [0, 1], features scaled to unit variance; the first feature is the constant."""
    scale = np.sqrt(np.asarray(train.features.multiply(train.features).mean(axis=0)).ravel()) + 1e-9
    scaled = train.features.multiply(1 / scale).tocsr()
    weights = train.weights * len(train.weights) / train.weights.sum()
    model = LogisticRegression(C=strength, max_iter=400, fit_intercept=False)
    both = sparse.vstack([scaled, scaled]).tocsr()
    labels = np.repeat([1, 0], len(train.targets))
    model.fit(both, labels, sample_weight=np.concatenate([weights * train.targets, weights * (1 - train.targets)]))
    found = model.coef_[0] / scale
    for half, sample in (("fitted half", train), ("other half", check)):
        area = roc_auc_score(sample.targets > 0, sample.features @ found, sample_weight=sample.weights)
        print(f"{name}: {sample.features.shape[0]} rows of the {half}, area under the curve {area:.3f}")
    return dict(zip(names, found.tolist(), strict=True))


def fit_length(train: Sequence[Case], check: Sequence[Case]) -> dict[str, float]:
    def rows(cases: Sequence[Case]) -> np.ndarray:
        return np.array([list(question_features(view_question(case.question.text)).values()) for case in cases])

    def lengths(cases: Sequence[Case]) -> np.ndarray:
        return np.array([math.log(1 + len(words(case.question.answer or ""))) for case in cases])

    model = Ridge(alpha=1.0, fit_intercept=False).fit(rows(train), lengths(train))
    for half, cases in (("fitted half", train), ("other half", check)):
        print(f"length: {len(cases)} questions of the {half}, R2 {model.score(rows(cases), lengths(cases)):.3f}")
    return dict(zip(QUESTION_FEATURES, model.coef_.tolist(), strict=True))


def fit(workspace: Path, settings: ExtractiveSettings) -> dict[str, dict[str, float]]:
    logs, talks = read_halves(workspace, "ama_bench"), read_halves(workspace, "locomo")
    limit, spoken = settings.max_units, settings.max_spoken_units
    return {
        "words": fit_logistic("words", WORD_WEIGHTS, *(word_sample(half, limit) for half in logs), strength=1.0),
        "citation": fit_logistic("citation", CITATION_FEATURES, *(citation_sample(half, limit) for half in logs), strength=0.3),
        "length": fit_length(*logs),
        "phrases": fit_logistic("phrases", phrases.FEATURES, *(phrase_sample(half, spoken) for half in talks), strength=0.05),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help=f"replace {OUTPUT.name}")
    arguments = parser.parse_args()
    fitted = fit(arguments.workspace, load_settings().reading.extractive)
    rounded = {model: {name: round(weight, DECIMALS) for name, weight in found.items()} for model, found in fitted.items()}
    content = {
        "made_by": "benchmarks/fit_extractive_reader.py",
        "fitted_on": "every other episode of the AMA-Bench and LoCoMo development data",
        "weights": rounded,
    }
    if arguments.write:
        OUTPUT.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
