import re

import pytest

from mesa_pipeline.errors import ConfigError
from mesa_pipeline.search.conformance import unused_signals
from mesa_pipeline.search.directions import DIRECTIONS, FREE, GUIDANCE_FOLDER, Direction, open_directions

PRIORS = [
    "lexical-rules",
    "temporal-anchors",
    "task-metadata",
    "capability-inference",
    "evidence-quality",
    "redundancy-complementarity",
    "structure-utility",
    "marginal-credit",
    "analogy",
    "risk-cost-cascade",
]
GUIDED = [direction for direction in DIRECTIONS.values() if direction.id != FREE]
READS_ALL = """
def fit(rows, ctx):
    return {"n": len(rows)}


def select(state, q):
    known = q["question"] + q["meta"].get("domain", "") + q["previews"]["S"]["text"]
    return ["S"] if len(known) > q["steps"] + state["n"] else ["V"]
"""
READS_NOTHING = """
def select(state, q):
    return ["S"]
"""
NAMES_A_STRUCTURE = re.compile(
    r"\b(?:summar(?:y|ies)|temporal (?:store|structure)|(?:knowledge )?graph|vectors? (?:store|database|structure)|raw)\b",
    re.IGNORECASE,
)
NAMES_A_CODE = re.compile(r"(?<![A-Za-z])[STGVR](?![A-Za-z])")


def test_none_opens_the_ten_priors_in_order():
    assert [direction.id for direction in open_directions(None)] == PRIORS


def test_named_directions_come_in_the_order_named():
    assert [direction.id for direction in open_directions(["ensemble", "free", "analogy"])] == ["ensemble", "free", "analogy"]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'lexical' is not a direction; known are lexical-rules, .*, free"):
        open_directions(["lexical"])


def test_a_direction_named_twice_is_refused():
    with pytest.raises(ConfigError, match=r"'analogy' stands twice"):
        open_directions(["analogy", "free", "analogy"])


def test_a_record_without_its_text_file_says_which_file_to_write():
    with pytest.raises(ConfigError, match=r"'nowhere' has no guidance; write it into .*nowhere\.md"):
        _ = Direction("nowhere", "any", "any", (), "nothing").guidance


def test_each_text_file_belongs_to_a_record_and_each_record_has_one():
    assert {path.stem for path in GUIDANCE_FOLDER.glob("*.md")} == set(DIRECTIONS)


@pytest.mark.parametrize("direction", GUIDED, ids=lambda direction: direction.id)
def test_guidance_says_signal_mechanism_fitting_and_mistakes_with_an_example(direction):
    headings = re.findall(r"^\*\*(.+?)\*\*", direction.guidance, re.MULTILINE)
    assert headings == ["Signal.", "Mechanism.", "What `fit` may learn.", "Avoid.", "For example."]
    assert 500 < len(direction.guidance) < 2500


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=lambda direction: direction.id)
def test_no_direction_says_which_structures_are_right(direction):
    words = " ".join([direction.guidance, direction.signal, direction.guards_against])
    assert not NAMES_A_STRUCTURE.search(words)
    assert not NAMES_A_CODE.search(words)


def test_free_guides_nowhere():
    free = DIRECTIONS[FREE]
    assert (free.mechanism, free.inputs) == ("any", ())
    assert len(free.guidance) < 100


@pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=lambda direction: direction.id)
def test_the_linter_knows_the_inputs_of_every_direction(direction):
    assert unused_signals(READS_ALL, direction.inputs) == ()
    assert unused_signals(READS_NOTHING, direction.inputs) == direction.inputs
