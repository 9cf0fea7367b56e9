import itertools
import math

import numpy as np
import pytest

from mesa_pipeline.evaluation.prefill import prefill
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.subsets import ALL_SUBSETS, STRUCTURE_CODES, size
from mesa_pipeline.types import Evidence, EvidenceItem


class CharacterCounter:
    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


def test_five_equal_sections_by_hand():
    """31 prompts have 80 sections between them, and each prompt has one that no shorter one had."""
    tokens = [[100.0 * size(mask) for mask in ALL_SUBSETS]]
    found = prefill(np.array(tokens))
    assert (found.naive, found.shared) == (8000, 3100)
    assert found.share == pytest.approx(31 / 80)


def test_it_counts_the_nodes_of_the_tree_of_prompts():
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
    assert prefill(np.array(tokens, dtype=float)).share == pytest.approx(paid / sum(tokens[0]))


def test_questions_not_swept_and_empty_evidence_have_no_share():
    full = [100.0 * size(mask) for mask in ALL_SUBSETS]
    assert prefill(np.array([full, [np.nan] * 31], dtype=float)).share == pytest.approx(31 / 80)
    assert math.isnan(prefill(np.array([[0.0] * 31], dtype=float)).share)
    assert math.isnan(prefill(np.empty((0, 31))).share)
