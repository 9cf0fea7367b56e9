import itertools
import math

import numpy as np
import pytest

from mesa_pipeline.evaluation.prefill import prefill_share
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.subsets import ALL_SUBSETS, STRUCTURE_CODES, size
from mesa_pipeline.types import Evidence, EvidenceItem


class CharacterCounter:
    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


def matrix_of(make_matrix, tokens):
    return make_matrix([("e", "", None)] * len(tokens), np.zeros((len(tokens), 31)), np.array(tokens, dtype=float))


def test_five_equal_sections_by_hand(make_matrix):
    """31 prompts have 80 sections between them, and each prompt has one that no shorter one had."""
    tokens = [[100.0 * size(mask) for mask in ALL_SUBSETS]]
    assert prefill_share(matrix_of(make_matrix, tokens)) == pytest.approx(31 / 80)


def test_it_counts_the_nodes_of_the_tree_of_prompts(make_matrix):
    """Against a cache written out: every prefix of sections is paid for once."""
    records = {code: tuple(EvidenceItem(f"{k} " * 20 * k, (k,), is_record=True) for k in range(1, 6)) for code in "TVR"}
    evidence = {code: Evidence(code, records.get(code, (EvidenceItem(f"about {code}", (1,)),))) for code in STRUCTURE_CODES}
    evidence["G"] = Evidence("G")
    composer = Composer(evidence, CharacterCounter())
    prompts = {mask: [section.text for section in composer.compose(mask).sections] for mask in ALL_SUBSETS}
    cached = {prefix for texts in prompts.values() for prefix in itertools.accumulate(texts, lambda a, b: a + b)}
    paid = sum(
        len(prefix) - max((len(p) for p in cached if p != prefix and prefix.startswith(p)), default=0) for prefix in cached
    )
    tokens = [[float(sum(map(len, prompts[mask]))) for mask in ALL_SUBSETS]]
    assert prefill_share(matrix_of(make_matrix, tokens)) == pytest.approx(paid / sum(tokens[0]))


def test_questions_not_swept_and_empty_evidence_have_no_share(make_matrix):
    full = [100.0 * size(mask) for mask in ALL_SUBSETS]
    assert prefill_share(matrix_of(make_matrix, [full, [np.nan] * 31])) == pytest.approx(31 / 80)
    assert math.isnan(prefill_share(matrix_of(make_matrix, [[0.0] * 31])))
    assert math.isnan(prefill_share(matrix_of(make_matrix, np.empty((0, 31)))))
