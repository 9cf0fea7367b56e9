"""What the rules find in logs of several kinds."""

import time
import tracemalloc

import pytest

from mesa_pipeline.structures.rule_extraction import RuleExtractor
from mesa_pipeline.structures.sentence_relations import sentence_triples
from mesa_pipeline.structures.structured_text import TableScanner, element, key_value, read_literal, starts_literal
from mesa_pipeline.structures.triples import split_passages
from mesa_pipeline.types import Step

EXTRACTOR = RuleExtractor(triples_per_step=48)


def found(*pairs: tuple[str, str]) -> list[str]:
    steps = [Step(index, action, observation) for index, (action, observation) in enumerate(pairs)]
    return [f"{t.step}: {t.subject} | {t.relation} | {t.object}" for t in EXTRACTOR.extract(steps)]


def test_a_command_phrase_relates_agent_object_and_place() -> None:
    triples = found(("move soapbar 1 to garbagecan 1", "You move the soapbar 1 to the garbagecan 1."))
    assert triples[:2] == ["0: agent | move | soapbar 1", "0: soapbar 1 | move to | garbagecan 1"]


def test_a_tool_call_relates_tool_arguments_and_names() -> None:
    triples = found(('bash: {"command": "python src/app_main.py"}', "Error: no such file src/app_main.py"))
    assert "0: bash | command | python src/app_main.py" in triples
    assert "0: src/app_main.py | in bash | bash: python src/app_main.py" in triples
    assert "0: bash: python src/app_main.py | fails with | Error: no such file src/app_main.py" in triples


def test_a_message_without_a_subject_answers_the_action() -> None:
    assert "0: south | is answered | It's solid stone." in found(("south", "It's solid stone."))


def test_sentences_with_equally_many_commas_are_no_table() -> None:
    lines = "a wall very near north, east, and west\na door far south, west, and east"
    assert not any("| east |" in triple for triple in found(("look", lines)))


def test_three_equal_actions_are_no_dialogue() -> None:
    assert "2: Moves | changes from 8 to | 7" in found(("up", "Moves: 9"), ("up", "Moves: 8"), ("up", "Moves: 7"))


def test_an_observed_place_holds_what_is_seen_there() -> None:
    triples = found(("go to shelf 1", "You arrive at shelf 1. On the shelf 1, you see a book 2, and a pen 1."))
    assert {"0: book 2 | on | shelf 1", "0: pen 1 | on | shelf 1", "0: agent | arrive at | shelf 1"} <= set(triples)


def test_named_values_and_their_changes() -> None:
    triples = found(("up", "Score: 6\nMoves Left: 48"), ("up", "Score: 6\nMoves Left: 47"))
    assert "0: Moves Left | is | 48" in triples
    assert "1: Moves Left | changes from 48 to | 47" in triples
    assert not any(triple.startswith("1: Score") for triple in triples)


def test_an_object_of_json_owns_its_values() -> None:
    text = 'Result:\n{"rows": [{"name": "Ada", "born": 1815}, {"name": "Alan", "born": 1912}], "total": 2}\nDone: yes'
    triples = found(("sql: SELECT 1", text))
    assert {"0: Ada | born | 1815", "0: Alan | born | 1912", "0: total | is | 2", "0: Done | is | yes"} <= set(triples)


def test_table_rows_are_owned_by_their_first_cell() -> None:
    triples = found(("query: x", "id,city,age\nr1,Rome,12\nr2,Oslo,9"))
    assert {"0: r1 | city | Rome", "0: r2 | age | 9"} <= set(triples)


def test_elements_of_a_page() -> None:
    triples = found(("click [7]", "[1] RootWebArea 'Shop' focused: True\n\t[7] link 'Cart (2)'"))
    assert "0: [7] | is link on Shop | Cart (2)" in triples


def test_speech_is_about_the_speaker_at_the_time_of_the_turn() -> None:
    turn = "[1:56 pm on 8 May, 2023] Ann: I went to a support group yesterday. [shares an image: a red dog]"
    steps = [Step(0, "say", turn), Step(1, "say", "[1:56 pm on 8 May, 2023] Bo: How was it?")]
    triples = {(t.subject, t.relation, t.object): t.time for t in EXTRACTOR.extract(steps)}
    assert triples[("Ann", "went to", "support group")] == "yesterday, 1:56 pm on 8 May, 2023"
    assert triples[("Ann", "shares an image", "a red dog")] == "1:56 pm on 8 May, 2023"
    assert not any(subject == "Bo" for subject, _, _ in triples)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I picked the lamp up from the desk.", None),
        ("The article was promoted by Ian Rose.", ("article", "was promoted by", "Ian Rose")),
        ("We celebrated my daughter's birthday with a concert.", ("Ann", "celebrated", "Ann's daughter's birthday")),
        ("I haven't read the book.", ("Ann", "have not read", "book")),
        ("My grandma gave me this necklace.", ("Ann's grandma", "gave", "necklace")),
        ("Last week I went to a concert.", ("Ann", "went to", "concert")),
        ("If it fails, card.py raises a VerifyError.", ("card.py", "raises", "VerifyError")),
        ("Did you see the dog?", None),
        ("", None),
    ],
)
def test_sentences(sentence: str, expected: tuple[str, str, str] | None) -> None:
    triples = [(t.subject, t.relation, t.object) for t in sentence_triples(sentence, speaker="Ann")]
    if expected:
        assert expected in triples
    elif sentence.endswith("?") or not sentence:
        assert triples == []


def test_what_changed_and_failed_survives_the_bound() -> None:
    noise = "\n".join(f"the worker copied package{n} into folder{n}" for n in range(300))
    triples = RuleExtractor(triples_per_step=5).extract([Step(0, "run: all", f"{noise[:2000]}\nfatal error: disk full")])
    assert len(triples) == 5
    assert any(triple.relation == "fails with" for triple in triples)


def test_a_repeated_observation_adds_nothing() -> None:
    text = "The lamp stands on the desk.\nScore: 3"
    assert all(triple.startswith(("0:", "1: agent | does")) for triple in found(("wait", text), ("look", text)))


@pytest.mark.parametrize(
    "text", ["", "\x00", "\ud83d\ud83d", "{{}}{", "{'a': {'b': ", "::::", "\u202e\u0634\u0645: \u0634", "[[[", "|||\n|||"]
)
def test_odd_text_is_no_error(text: str) -> None:
    assert all(triple.step == 0 for triple in EXTRACTOR.extract([Step(0, text, text)]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "word " * 225_000,
        "x" * 1_100_000,
        '{"a": ' * 180_000,
        '"\\' * 550_000,
        "a.b-c/" * 180_000,
        "The cat sat on the mat. " * 45_000,
        "k: v\n" * 220_000,
        "'" * 1_100_000,
        "a=b " * 270_000,
        ". , " * 270_000,
    ],
    ids=["words", "one word", "nested", "escapes", "path", "prose", "pairs", "quotes", "assignments", "marks"],
)
def test_a_huge_step_takes_bounded_time_and_memory(text: str) -> None:
    tracemalloc.start()
    started = time.process_time()
    passages = list(split_passages([Step(0, "read", text)], 24000, 300))
    triples = [triple for passage in passages for triple in EXTRACTOR.extract(passage)]
    seconds = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 40 < len(passages) < 60
    assert len(triples) <= 48 * len(passages)
    assert seconds < 60
    assert peak < 300 * 2**20


class TestLiterals:
    @pytest.mark.parametrize("line", ['{"a": 1}', "{'a': 1}", '"a": 1,', "[{", "{"])
    def test_recognised(self, line: str) -> None:
        assert starts_literal(line)

    @pytest.mark.parametrize("line", ["a: 1", "[457] link 'x'", "{x}", "", "if (a) {"])
    def test_not_recognised(self, line: str) -> None:
        assert not starts_literal(line)

    def test_cut_off_literals_yield_what_is_there(self) -> None:
        fields = read_literal("{'query': 'x y', 'results': [{'url': 'u1', 'title': 'cut", 0).fields
        assert [(field.owner, field.key, field.value) for field in fields] == [
            ("", "query", "x y"),
            ("results", "url", "u1"),
            ("u1", "title", "cut"),
        ]

    def test_a_list_is_one_value(self) -> None:
        (board, tile) = read_literal("{'board': [[0, 2], [4, 8]], 'tile': 8} tail", 0).fields
        assert (board.value, tile.value) == ("[[0, 2], [4, 8]]", "8")

    def test_reading_stops_where_the_literal_does(self) -> None:
        text = 'x {"a": {"b": 1}} more: 2'
        assert text[read_literal(text, 2).end :] == " more: 2"


def test_tables_with_rulers() -> None:
    scanner = TableScanner()
    rows = [scanner.scan(line) for line in ("| name | age |", "|---|---|", "| Ada | 36 |", "prose here")]
    assert [[(field.owner, field.key, field.value) for field in row] for row in rows] == [[], [], [("Ada", "age", "36")], []]


def test_single_lines() -> None:
    pair, node = key_value("Moves Left: 4"), element('[3] StaticText "You can\'t"')
    assert pair is not None and (pair.key, pair.value) == ("Moves Left", "4")
    assert node is not None and (node.id, node.role, node.name) == ("3", "StaticText", "You can't")
    assert key_value("no pair here") is None
    assert element("[3] nothing") is None
