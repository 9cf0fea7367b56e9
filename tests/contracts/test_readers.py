"""The promises of ``reading.Reader``, kept by every reader that works without a server."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline.artifacts import dump_json
from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.reading import Reader
from mesa_pipeline.reading.extractive import ExtractiveReader
from mesa_pipeline.types import Answer, ComposedEvidence, Section

READERS: dict[str, Callable[[Settings], Reader]] = {
    "extractive": lambda settings: ExtractiveReader(settings.reading.extractive),
}
PARAMS = Path(__file__).resolve().parents[2] / "params.yaml"
RECORD = "Step 3\nAction: open box\nObservation: a red key lies in the box\n\n"
TURN = "Step 4\nAction: say\nObservation: [1:56 pm on 8 May, 2023] Ann: I saw a red key in the box yesterday.\n\n"
QUESTIONS = (
    *("", " ", "What lies in the box at step 3?", "When did Ann see the red key?", "What actions were performed until step 4?"),
    *("\x00", "\ud83d", "\u202e\u05e9\u05dc", "{0} %s ${x}", "step 99999999999999999999", "\u4ec0\u4e48\uff1f"),
)
TEXTS = (
    *("", " \n\n", RECORD, TURN, RECORD + TURN, "## Steps by time\n\n" + RECORD, "\x00\ud83d\u202e{}"),
    *("Step 3: open box -> a red key", "box --holds--> key (steps 3, 4)", "Step 3\nAction: \nObservation: "),
    *("Steps 9-2: x; y x3", "Steps 0-999999999: look", "Step 999999999999\nAction: box"),
    *("Actions of the steps named:\n3: open box\n\n3: no action", "Also relevant, shown above: step 3"),
)


@pytest.fixture(params=sorted(READERS))
def reader(request: pytest.FixtureRequest, settings: Settings) -> Reader:
    return READERS[request.param](settings)


def composed(*texts: str) -> ComposedEvidence:
    return ComposedEvidence(tuple(Section(code, text, len(text)) for code, text in zip("SRVTG", texts, strict=False)))


@pytest.mark.parametrize("question", QUESTIONS)
def test_empty_evidence_gives_an_empty_answer(reader, question):
    assert reader.answer(question, "task", composed()) == Answer("")
    assert reader.answer(question, "task", composed("", "")) == Answer("")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_odd_input_is_answered_without_failing_and_the_same_again(reader, question, text):
    first = reader.answer(question, "task", composed(text, RECORD))
    assert first.error is None
    assert first == reader.answer(question, "task", composed(text, RECORD))


@hypothesis_settings(max_examples=80, deadline=None)
@given(
    st.text(max_size=80),
    st.lists(st.text(st.characters(exclude_categories=()), max_size=200), max_size=4),
    st.sampled_from((RECORD, TURN, "")),
)
@pytest.mark.parametrize("name", sorted(READERS))
def test_any_text_is_answered(name, question, texts, known):
    answer = READERS[name](load_settings(PARAMS, environment={})).answer(question, "", composed(known, *texts))
    assert answer.error is None


def test_an_earlier_question_leaves_no_trace(reader, settings):
    evidence = composed(RECORD, TURN)
    for question in QUESTIONS:
        reader.answer(question, "task", evidence)
    asked = reader.answer(QUESTIONS[2], "task", evidence)
    assert asked == READERS[reader.name](settings).answer(QUESTIONS[2], "task", evidence)
    assert asked.text


def test_identity_is_json_and_names_the_reader(reader):
    dump_json(dict(reader.identity()))
    assert reader.identity()["name"] == reader.name


@pytest.mark.parametrize("name", sorted(READERS))
def test_answers_do_not_depend_on_the_hash_seed(name):
    code = (
        "from tests.contracts.test_readers import *\n"
        f"reader = READERS[{name!r}](load_settings(PARAMS, environment={{}}))\n"
        "print(ascii([reader.answer(q, '', composed(t, RECORD, TURN)).text for q in QUESTIONS for t in TEXTS]))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(PARAMS.parent)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(told) == 1
