import ast

import pytest

from mesa_pipeline.evaluation.observables import QUESTION_FORMS, Condition, Predicate
from mesa_pipeline.policies.sandbox.gate import DEFAULT_LIMITS, check, require_valid
from mesa_pipeline.search.proposers.templates import TEMPLATES, cross, render, repair
from tests.search.proposers.templates.worlds import Question, preview, rows, run, share_right, unseen

MANY = Predicate((Condition("asks_how_many", "=", True),))
PREDICATES = [
    *(Predicate((Condition(name, "=", True),)) for name in QUESTION_FORMS),
    *(
        Predicate((Condition(name, ">", 1.0),))
        for name in ("words", "steps", "named_steps", "named_span", "G.items", "G.overlap")
    ),
    Predicate((Condition("domain", "=", "court"), Condition("T.top_score", "<=", 3.0))),
]


def by_cue(asked: Question) -> str:
    return "G" if "how many" in asked["question"] else "SV"


def test_a_source_holds_the_functions_it_needs_and_no_others() -> None:
    source = render(TEMPLATES["cue-rules"].default(True), "lexical-rules", "A test.", [])
    defined = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    called = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}

    assert {"learn_rules", "choose", "fit", "select"} <= defined
    assert "predict_neighbours" not in defined and "preview" not in source
    assert defined - called == {"fit", "select"}


def test_equal_genomes_give_equal_text_and_meta_says_what_it_is() -> None:
    genome = repair(TEMPLATES["agreement"].default(False), MANY)
    source = render(genome, "free", "Words say 'much'.", ["all", "01-explore"])

    assert source == render(genome, "free", "Words say 'much'.", ["all", "01-explore"])
    meta = require_valid(source).meta
    assert (meta["direction"], meta["hypothesis"], meta["parents"]) == ("free", "Words say 'much'.", ["all", "01-explore"])


@pytest.mark.parametrize("first", ["factored-in-context", "cue-rules"])
@pytest.mark.parametrize("second", TEMPLATES)
def test_pairs_pass_the_gate_unless_they_are_too_long(first: str, second: str) -> None:
    genome = cross(TEMPLATES[first].default(True), TEMPLATES[second].default(True), MANY)
    source = render(repair(genome, PREDICATES[-1]), "free", "A test.", [])
    too_long = len(source.encode()) > DEFAULT_LIMITS.source_bytes

    assert [violation.message.split()[0] for violation in check(source)] == (["the"] if too_long else [])


@pytest.mark.parametrize("predicate", PREDICATES, ids=lambda predicate: predicate.words)
def test_every_predicate_can_repair(predicate: Predicate) -> None:
    source = render(repair(TEMPLATES["label-cells"].default(True), predicate), "free", "A test.", [])
    odd = [
        {"question": "", "meta": {}, "steps": 0, "previews": {}},
        {**unseen(1)[0], "previews": {"T": preview(top_score=None)}},
    ]

    assert check(source) == ()
    assert all(run(source, rows(by_cue, episodes=3), [*odd, *unseen(1)]))


def test_a_repair_gives_the_questions_of_a_predicate_a_subset_of_their_own() -> None:
    genome, asked = TEMPLATES["context-cells"].default(True), unseen()
    before = run(render(genome, "free", "A test.", []), rows(by_cue), asked)

    after = run(render(repair(genome, MANY), "free", "A test.", []), rows(by_cue), asked)

    assert share_right(before, asked, by_cue) < 0.8
    assert share_right(after, asked, by_cue) == 1.0


def test_a_gate_lets_another_genome_decide_where_a_predicate_holds() -> None:
    words = TEMPLATES["label-cells"].default(True)
    kinds = TEMPLATES["context-cells"].default(True)
    never = Predicate((Condition("words", ">", 1e9),))
    always = Predicate((Condition("words", "<=", 1e9),))
    made, asked = rows(by_cue), unseen()

    alone = [run(render(genome, "free", "A test.", []), made, asked) for genome in (words, kinds)]
    gated = [run(render(cross(words, kinds, where), "free", "A test.", []), made, asked) for where in (never, always)]

    assert gated == alone


def test_an_average_of_a_genome_with_itself_chooses_alike() -> None:
    genome, made, asked = TEMPLATES["anchor-cells"].default(True), rows(by_cue), unseen()

    alone = run(render(genome, "free", "A test.", []), made, asked)

    assert run(render(cross(genome, genome, None), "free", "A test.", []), made, asked) == alone
