"""Each family finds the signal it was made for, and answers anything."""

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from mesa_pipeline import subsets
from mesa_pipeline.policies.sandbox.gate import check
from mesa_pipeline.search.conformance import unused_signals
from mesa_pipeline.search.directions import DIRECTIONS
from mesa_pipeline.search.proposers.templates import TEMPLATES, Genome, random_genome, render
from tests.search.proposers.templates.worlds import (
    EPISODES,
    PER_EPISODE,
    Question,
    preview,
    question,
    rows,
    run,
    share_right,
    unseen,
)

ODD = [
    "",
    "\x00\x07",
    "\ud800 half",
    "\u202e\u05e9\u05dc\u05d5\u05dd",
    "{0.__class__} %s",
    "step " + "9" * 400,
    "a b " * 25_000,
]
SEEDS = range(3)


def genomes(template: str) -> list[Genome]:
    drawn = [
        random_genome(TEMPLATES[template], labels, random.Random(f"{template}{seed}"))
        for seed in SEEDS
        for labels in (True, False)
    ]
    return [TEMPLATES[template].default(True), TEMPLATES[template].default(False), *drawn]


def source(genome: Genome) -> str:
    return render(genome, TEMPLATES[genome.template].directions[0], "A test.", [])


def written(template: str, **genes: Any) -> str:
    default = TEMPLATES[template].default(True)
    return source(Genome(template, {**default.genes, **genes}))


def by_domain(asked: Question) -> str:
    return "T" if "kettle" in asked["previews"]["T"]["text"] else "GV"


def by_step(asked: Question) -> str:
    return "T" if "step" in asked["question"] else "SV"


def by_cue(asked: Question) -> str:
    return "G" if "how many" in asked["question"] else "SV"


def by_evidence(asked: Question) -> str:
    return "GV" if asked["previews"]["G"]["n_items"] else "TR"


def by_asking(asked: Question) -> str:
    return "G" if asked["question"].startswith("What was") else "SV"


PLANTED: dict[str, tuple[str, dict[str, Any], Callable[[Question], str]]] = {
    "label": ("label-cells", {"keys": ("domain",)}, by_domain),
    "kind of evidence": ("context-cells", {}, by_domain),
    "kind of evidence, with caution": ("cautious-cells", {}, by_domain),
    "steps": ("anchor-cells", {"keys": ("anchor",)}, by_step),
    "words": ("cue-rules", {}, by_cue),
    "empty evidence": ("preview-gates", {"rate": 1.0}, by_evidence),
    "worth of structures": ("factored-utility", {}, by_domain),
    "worth of structures in context": ("factored-in-context", {}, by_domain),
    "likeness": ("neighbours", {"sources": "STGVR"}, by_domain),
    "likeness of wording": ("neighbours", {"sources": "Q"}, by_asking),
    "agreement": ("agreement", {}, by_domain),
    "coverage in context": ("coverage-in-context", {}, by_domain),
    "intent": ("intent-cells", {"keys": ("intent",)}, by_cue),
}


@pytest.mark.parametrize("signal", PLANTED)
def test_a_family_finds_the_signal_it_was_made_for(signal: str) -> None:
    template, genes, best = PLANTED[signal]
    asked = unseen()

    choices = run(written(template, **genes), rows(best), asked)

    assert share_right(choices, asked, best) > 0.9


def test_credit_leaves_out_the_structure_that_harms() -> None:
    made = rows(lambda _: "STGVR", noise=0.05)
    for row in made:
        row["y"] = [0.2 * bool(mask & 0b00010) - 0.2 * bool(mask & 0b10000) + 0.3 for mask in subsets.ALL_SUBSETS]

    choices = run(written("credited-structures", keys=("anchor",), arms=31, share=1.0), made, unseen())

    assert all("T" in chosen and "R" not in chosen for chosen in choices)


def test_coverage_reads_what_holds_the_words_of_the_question() -> None:
    """Which structure covers a question changes from question to question; what is worth reading changes with it."""
    made = rows(lambda _: "STGVR", noise=0.02)
    for k, row in enumerate(made):
        shows = "TV"[k % 2]
        row["previews"] = {code: preview(row["question"] if code == shows else "nothing") for code in subsets.STRUCTURE_CODES}
        bit = 1 << subsets.STRUCTURE_CODES.index(shows)
        row["y"] = [0.6 if mask & bit else 0.2 for mask in subsets.ALL_SUBSETS]

    choices = run(written("coverage", trust=1.0, arms=31, share=0.5), made, made)

    assert all("TV"[k % 2] in chosen for k, chosen in enumerate(choices))


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_genome_passes_the_gate_and_reads_what_its_directions_are_about(template: str) -> None:
    for genome in genomes(template):
        assert check(source(genome)) == ()
    default = source(TEMPLATES[template].default(True))
    for direction in TEMPLATES[template].directions:
        assert unused_signals(default, DIRECTIONS[direction].inputs) == ()


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_genome_answers_anything(template: str) -> None:
    known = question(0, 1)
    asked = [
        *({"question": text, "meta": {}, "steps": 0, "previews": {}} for text in ODD),
        *({**known, "question": text, "meta": {"domain": "\u2603", "qa_type": ""}} for text in ODD),
        {**known, "previews": {"T": preview(step_ids=[], scores=[], top_score=None)}, "steps": 10**9},
    ]
    for genome in genomes(template):
        choices = run(source(genome), rows(by_domain, episodes=4), asked)
        assert all(chosen and set(chosen) <= set(subsets.STRUCTURE_CODES) for chosen in choices)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("most", [1, 2])
def test_no_more_structures_than_allowed(template: str, most: int) -> None:
    for genome in genomes(template)[:4]:
        choices = run(source(genome), rows(by_domain, episodes=4), unseen(), max_structures=most)
        assert max(len(chosen) for chosen in choices) <= most


@pytest.mark.parametrize("template", TEMPLATES)
def test_few_rows_unscored_cells_and_questions_without_labels_or_previews(template: str) -> None:
    made = rows(by_domain, episodes=2)
    for k, row in enumerate(made):
        row["y"] = [None if (k + j) % 3 == 0 else score for j, score in enumerate(row["y"])]
    made[0]["y"] = [None] * 31
    bare = [{**row, "meta": {}, "previews": {}} for row in made]
    for training in (made, made[:1], bare):
        for genome in genomes(template)[:4]:
            assert all(run(source(genome), training, unseen()))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_fit_of_five_hundred_rows_takes_no_more_than_seconds(template: str) -> None:
    made = rows(by_domain, episodes=500 // PER_EPISODE)
    started = time.process_time()

    run(source(TEMPLATES[template].default(True)), made, [])

    assert time.process_time() - started < 20.0
    assert EPISODES < 500 // PER_EPISODE
