"""The tables of docs/scaling.md that are computed, not measured."""

from pathlib import Path

import pytest

from benchmarks.scale_on_paper import Assumed, Measured, Unit, lasting, need, scaled, sized, sweep_tokens, tables

MARKER = "<!-- scale_on_paper -->"


def test_the_document_shows_what_the_script_prints():
    document = (Path(__file__).resolve().parents[2] / "docs" / "scaling.md").read_text()
    assert document.split(MARKER)[1].strip() == tables()


def test_a_need_grows_with_the_trajectories_and_a_sample_does_not():
    small, large = (need(size, Measured(), Unit(), Assumed()) for size in (1_000, 1_000_000))
    assert large.build_tokens == pytest.approx(1000 * small.build_tokens)
    assert large.bytes["V"] == pytest.approx(1000 * small.bytes["V"])
    assert large.sample_tokens == small.sample_tokens == small.sweep_tokens


def test_one_measured_set_costs_what_was_measured():
    found = need(86, Measured(), Unit(), Assumed())
    assert found.bytes["episodes"] == 20_593_522
    assert found.embedding_tokens == 6.3e6
    assert found.build_tokens == pytest.approx(6.9e6 + 1_233 * 600 + 6.4e6 + 939 * 2_048)
    assert found.offline_core_hours == pytest.approx(6_233 * (1.15 + 1.23 + 6.49 + 0.67 + 340.42) / 1e4 / 3600)


def test_a_question_is_read_under_sixteen_subsets_a_structure():
    """Worked by hand: 16 x 20,212 x 0.192, 31 answers of 150 and verdicts of 263, a check of 2,810 and 64."""
    assert sweep_tokens(Measured(), Assumed()) / 1_032 == pytest.approx(62_091 + 12_803 + 2_874, rel=1e-3)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (sized(950), "950 B"),
        (sized(1_000), "1 kB"),
        (sized(2.5e17), "250 PB"),
        (scaled(0.41, ("", " thousand")), "0.41"),
        (lasting(0.01), "36 seconds"),
        (lasting(0.5), "30 minutes"),
        (lasting(47), "47 hours"),
        (lasting(49), "2 days"),
        (lasting(24 * 365 * 3), "3 years"),
    ],
)
def test_figures_have_two_digits_and_a_unit(shown: str, expected: str):
    assert shown == expected
