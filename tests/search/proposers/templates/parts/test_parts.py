"""The functions that template policies are made of, against numbers worked out by hand."""

import pytest

from mesa_pipeline.search.proposers.templates.parts import (
    caution,
    cells,
    choice,
    credit,
    questions,
    rules,
    stumps,
    tokens,
    words,
)
from mesa_pipeline.structures.step_references import parse_references
from tests.search.proposers.templates.worlds import CONTEXT, preview

TABLE = {"arms": [0, 1], "shrinkage": 2.0, "start": [0.0, 0.0], "groups": [0, 0, 1, 1]}
PLAIN = {"price": 1.0, "arms": 31, "share": 1.0, "shrinkage": 1.0, "seen_tokens": False}


def asked(text: str, steps: int = 100) -> dict[str, object]:
    return {"question": text, "meta": {}, "steps": steps, "previews": {}}


def row(scores: list[float | None], token_unit: int = 100) -> dict[str, object]:
    return {"y": scores, "tok": [token_unit * mask.bit_count() for mask in range(1, 32)], "group": 0}


def test_scores_are_taken_relative_to_the_question_and_unscored_ones_stay() -> None:
    assert choice.relative_values([0.2, None, 0.6]) == [pytest.approx(-0.2), None, pytest.approx(0.2)]
    assert choice.relative_values([None, None]) == [None, None]


def test_an_unscored_cell_takes_the_mean_of_its_subset() -> None:
    table = choice.outcome_table([row([0.5] * 30 + [1.0]), row([None] * 31)], CONTEXT, {**PLAIN, "price": 0.0})

    assert table["values"][1] == table["values"][0]
    assert table["arms"][0] == 30
    assert table["worth"] == sorted(table["worth"], reverse=True)


def test_the_short_list_holds_the_best_that_are_small_and_cheap_enough() -> None:
    worth = [k / 100 for k in range(31)]
    prices = [100.0 * mask.bit_count() for mask in range(1, 32)]

    def listed(most: int, share: float, arms: int = 2) -> list[list[str]]:
        found = choice.short_list(worth, prices, {**CONTEXT, "max_structures": most}, {"share": share, "arms": arms})
        return [CONTEXT["subsets"][k] for k in found]  # type: ignore[index]

    assert listed(5, 1.0) == [["S", "T", "G", "V", "R"], ["T", "G", "V", "R"]]
    assert listed(5, 0.4) == [["V", "R"], ["G", "R"]]
    assert listed(1, 1.0) == [["R"], ["V"]]
    assert listed(1, 0.1) == [["R"], ["V"]], "none is as cheap: the share gives way"


def test_ties_go_to_fewer_tokens_and_the_price_counts() -> None:
    state = {"price": 0.0, "tokens": [300.0, 100.0], "subsets": [["S", "T"], ["T"]]}

    assert choice.choose(state, [0.5, 0.5], [300.0, 100.0]) == ["T"]
    assert choice.choose({**state, "price": 0.001}, [0.7, 0.6], [300.0, 100.0]) == ["T"]
    assert choice.choose({**state, "price": 0.0001}, [0.7, 0.6], [300.0, 100.0]) == ["S", "T"]


def test_cells_keep_a_share_of_their_mean_and_the_next_kind_sees_what_is_left() -> None:
    # "a": 2 rows of 1.0, keeps 2 / (2 + 2) of 1.0; the rest, 0.5, is seen by the second kind: "x" 1 row, 1 / 3 of 0.5.
    places = [["a", "x"], ["a", "y"], ["b", "y"], ["b", "y"]]
    residuals = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]

    first, second = cells.learn_cells(places, TABLE, residuals)

    assert first == {"a": [0.5, 0.0], "b": [0.0, 0.0]}
    assert second["x"] == [pytest.approx(0.5 / 3), 0.0]
    assert second["y"] == [pytest.approx(0.5 / 5), 0.0]
    assert cells.cell_effects([first, second], ["a", "never seen"], 2) == [0.5, 0.0]


def test_a_rule_needs_rows_of_two_episodes() -> None:
    table = {**TABLE, "values": [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], "start": [0.1, 0.0]}

    assert rules.rule_for(0, [0, 1], 0, table, {"support": 1})["gain"] == 0.0
    # Means 0.1 - 2/4 * 0.1 and 0 + 2/4 * 1.0 over two rows of different episodes.
    assert rules.rule_for(0, [0, 2], 0, table, {"support": 1})["gain"] == pytest.approx(2 * (0.5 - 0.05))
    assert rules.rule_for(0, [0, 2], 0, table, {"support": 3})["gain"] == 0.0


def test_a_gate_takes_the_cut_that_separates() -> None:
    table = {**TABLE, "values": [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]}

    found = stumps.learn_stumps([[5.0, 1.0], [5.0, 9.0], [5.0, 1.0], [5.0, 9.0]], table, {"rounds": 1, "rate": 1.0})

    assert found == [{"number": 1, "cut": 1.0, "sides": [[0.5, 0.0], [-0.5, 0.0]]}]
    assert stumps.stump_effects(found, [0.0, 3.0], 2) == [-0.5, 0.0]


def test_credit_is_the_change_that_adding_a_structure_makes() -> None:
    # Worth 1 with the first structure, and 2 more with the first two together.
    values = [bool(mask & 1) + 2.0 * (mask & 3 == 3) for mask in range(1, 32)]

    top = credit.changes_of(values, CONTEXT["structures"], True)
    spread = credit.changes_of(values, CONTEXT["structures"], False)

    assert top == [3.0, 2.0, 0.0, 0.0, 0.0]
    assert spread[0] == pytest.approx((7 * 1.0 + 8 * 3.0) / 15)
    assert spread[2:] == [0.0, 0.0, 0.0]


def test_caution_weighs_the_error_over_episodes() -> None:
    # The second subset's advantage is 0 in one episode and 2 in the other: error sqrt(2) / sqrt(2) = 1.
    table = {"worth": [1.0, 0.5], "arms": [0, 1], "values": [[0.0, 0.0], [0.0, 2.0]], "groups": [0, 1]}

    model = caution.learn_caution(table)

    assert model == {"robust": 0, "errors": [0.0, pytest.approx(1.0)]}
    assert caution.cautious([1.0, 1.4], model, 0.5) == [1.0, pytest.approx(0.9)]


def test_tokens_ahead_are_a_share_of_what_the_structures_cost_alone() -> None:
    shared = {"tok": [100, 300, 320] + [0] * 28}
    table = {"arms": [0, 2]}
    ratios = tokens.token_ratios([shared], table, CONTEXT)
    state = {"subsets": [["S"], ["S", "T"]], "tokens": [100.0, 320.0]}

    assert ratios == [1.0, 0.8]
    previews = {"S": preview(tokens=50), "T": preview(tokens=150)}
    assert tokens.tokens_ahead(state, ratios, {"previews": previews}) == [50.0, 160.0]
    assert tokens.tokens_ahead(state, ratios, {"previews": {"S": preview(tokens=50)}}) == [50.0, 320.0]


def test_words_are_weighed_by_how_rare_they_are_and_a_centre_draws_its_own() -> None:
    rows = [{"question": "", "previews": {"T": preview(text)}} for text in ["lamp desk"] * 3 + ["court judge"] * 5]
    contexts = words.learn_contexts(rows, ["T"], 2)

    places = [words.context(contexts, each, ["T"]) for each in rows]

    assert places[0] != places[-1]
    assert len(set(places[:3])) == len(set(places[3:])) == 1
    assert words.context(contexts, {"question": "lamp", "previews": {}}, ["T"]) == ""


@pytest.mark.parametrize(
    ("text", "steps", "kind"),
    [
        ("Why did it fail?", [], "none"),
        ("What happened at step 12?", [12], "one"),
        ("Between step 3 and step 40, what changed?", [3, 40], "wide"),
        ("What was seen in Steps 5-7?", [5, 7], "several"),
        ("Compare turn #4 with turn 6.", [4, 6], "several"),
    ],
)
def test_the_steps_a_question_names(text: str, steps: list[int], kind: str) -> None:
    assert questions.named_steps(asked(text)) == steps
    assert questions.anchor_kind(asked(text), 3) == kind


@pytest.mark.parametrize(
    "text",
    [
        "What is in step 4?",
        "List the actions from step 2 to step 9.",
        "At turn 17, where was the key?",
        "What did the agent hold after step 30?",
        "Why did the search fail?",
        "How many doors are there?",
        "During steps 10 through 14, which button was pressed?",
    ],
)
def test_naming_a_step_agrees_with_the_systems_own_parser(text: str) -> None:
    assert (questions.anchor(asked(text)) == "named") == bool(parse_references(text, 99).found)
