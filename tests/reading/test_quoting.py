"""The choice is compared with all choices there are, on cases small enough to try them all."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.reading.passages import Source, Unit, words
from mesa_pipeline.reading.quoting import Option, Quote, QuotingRules, Span, choose_quotes, split_clauses, split_phrases

RULES = QuotingRules(min_words=0, max_words=50, repeat_worth=0.0, quote_cost=0.0, citation_worth=0.0)


def unit(text: str, *steps: int) -> Unit:
    return Unit(text, words(text), (), "observation", Source(steps))


def expected_f1(shared: float, size: int, expected_words: float) -> float:
    return 2 * shared / (size + expected_words)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=4), min_size=1, max_size=5), st.integers(1, 20))
def test_beside_the_first_unit_the_quotes_have_the_largest_expected_f1(chances, expected_words):
    names = iter(f"w{number}" for number in range(100))
    options = []
    for row in chances:
        whole = unit(" ".join(next(names) for _ in row))
        options.append(Option(whole, row, [Span(0, len(row))]))
    choices = [[chances[0], *rest] for size in range(len(chances)) for rest in combinations(chances[1:], size)]
    best = max(expected_f1(sum(map(sum, choice)), sum(map(len, choice)), expected_words) for choice in choices)
    found = choose_quotes(options, expected_words, RULES)
    by_unit = {option.unit: option.chances for option in options}
    reached = expected_f1(
        sum(sum(by_unit[quote.unit]) for quote in found), sum(len(by_unit[quote.unit]) for quote in found), expected_words
    )
    assert reached >= 0.97 * best


def test_only_the_clauses_worth_quoting_are_quoted():
    whole = unit("nothing of note, the key is red, nothing else here")
    option = Option(whole, [0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.0, 0.0, 0.0], split_clauses(whole))
    assert [quote.text for quote in choose_quotes([option], 3.0, RULES)] == ["key is red"]


def test_up_to_a_least_length_the_most_relevant_units_are_quoted_whatever_they_seem_worth():
    options = [Option(unit(f"a{number} b{number}"), [0.0, 0.0], [Span(0, 2)]) for number in range(5)]
    found = choose_quotes(options, 6.0, QuotingRules(5, 50, 0.0, 0.0, 0.0))
    assert [quote.unit for quote in found] == [option.unit for option in options[:3]]


def test_a_repeated_word_is_worth_less():
    first, again, other = unit("key door"), unit("door key"), unit("lamp box")
    options = [Option(piece, [0.6, 0.6], [Span(0, 2)]) for piece in (first, again)] + [Option(other, [0.4, 0.4], [Span(0, 2)])]
    assert [quote.unit for quote in choose_quotes(options, 6.0, RULES)] == [first, other]


def test_the_number_of_a_step_can_make_a_quote_worth_its_words():
    likely, unlikely = unit("it stopped", 3), unit("it started", 4)
    rules = QuotingRules(0, 50, 0.5, 0.0, 0.9)
    options = [Option(likely, [0.2, 0.2], [Span(0, 2)], 0.9), Option(unlikely, [0.2, 0.2], [Span(0, 2)], 0.0)]
    assert [quote.unit for quote in choose_quotes(options, 2.0, rules)] == [likely]


def test_answers_are_bounded_and_never_empty():
    options = [Option(unit(f"a{number} b{number} c{number}"), [0.9] * 3, [Span(0, 3)]) for number in range(40)]
    found = choose_quotes(options, 100.0, QuotingRules(0, 10, 0.5, 0.0, 0.0))
    assert sum(len(quote.unit.tokens) for quote in found) <= 10
    assert len(choose_quotes([Option(unit("x"), [0.0], [Span(0, 1)])], 5.0, RULES)) == 1
    assert choose_quotes([], 5.0, RULES) == []


@pytest.mark.parametrize("text", ["The door, a key; and the lamp", "don't go", "x", "a İ b, c", "one (two) three", "\ud83d, x"])
def test_clauses_and_phrases_cover_the_unit(text):
    piece = unit(text)
    for spans in (split_clauses(piece), split_phrases(piece)):
        assert [position for span in spans for position in range(*span)] == list(range(len(piece.tokens)))
        for span in spans:
            assert words(Quote(piece, span).text) == piece.tokens[slice(*span)]
            assert Quote(piece, span).text in text
