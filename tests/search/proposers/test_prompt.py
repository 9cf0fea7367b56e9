import os
import re
import subprocess
import sys
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.evaluation.observables import Condition, Predicate
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.policies.sandbox.facades import FACADES
from mesa_pipeline.policies.sandbox.gate import check
from mesa_pipeline.search.conformance import unused_signals
from mesa_pipeline.search.directions import DIRECTIONS
from mesa_pipeline.search.proposers import ProposalRequest
from mesa_pipeline.search.proposers.prompt import prompt_fingerprint, request_message, retry_message, system_message
from tests.search.proposers.requests import ASKED, REPOSITORY, SETTINGS, SOURCE, card, entry, outside_fences, request, training

LLM, SANDBOX = SETTINGS.search.llm, SETTINGS.policies.sandbox
ROOM = 40_000
ANY_TEXT = st.text(st.one_of(st.sampled_from("`#|\n<>\\\"' "), st.characters(exclude_categories=())), max_size=60)


def prompt(chars: int = ROOM, **changes) -> str:
    return request_message(request(**changes), LLM, chars).content


def written_by_others(text: str, domain: str = "Game") -> ProposalRequest:
    """A request in which every text that does not come from the system itself is the one given."""
    texts = {"source": text, "hypothesis": text, "parents": (text,)}
    archive = tuple(entry(f"0{k}-explore", 0.3 - k / 100, **texts) for k in range(3))
    found = card(description=text, examples=(text, text), predicate=Predicate((Condition("domain", "=", text),)))
    rejections = tuple(replace(rejection, reason=text, source=text) for rejection in request().rejections)
    return request(
        archive=archive, parent=archive[0], cards=(found,), rejections=rejections, train=training(domain=text or "-", text=text)
    )


def test_the_system_message_names_everything_a_policy_may_use():
    text = system_message(SANDBOX).content
    for namespace, members in FACADES.items():
        assert f"`{namespace}`: {', '.join(members)}\n" in text
    assert "ml.ridge(features, targets, strength)\n    Least squares" in text
    assert "at most 20 kB" in text


def test_the_policy_given_as_an_example_is_valid_and_learns_from_the_rows():
    example = re.search(r"```python\n(.*?)```", system_message(SANDBOX).content, re.DOTALL)
    assert example is not None
    assert check(example[1]) == ()
    assert unused_signals(example[1], ("rows",)) == ()


def test_a_request_states_direction_slot_and_evidence():
    text = prompt()
    assert "# Request: the repair candidate of iteration 3" in text
    assert DIRECTIONS["lexical-rules"].guidance in text
    assert "A policy of this direction reads `question`." in text
    assert SOURCE.strip() in text
    assert "the question asks for a count" in text
    assert "gate: line 3, column 1: imports are refused" in text
    assert '"direction": "analogy", "pulls": 1, "value": 0.25' in text
    assert '"ctx": {"lambda": 1e-06, "shrinkage": 20.0, "max_structures": 5}' in text


@pytest.mark.parametrize(("slot", "words"), [("exploit", "has brought good policies"), ("explore", "has been tried little")])
def test_each_slot_has_a_task_of_its_own(slot, words):
    text = prompt(slot=slot, cards=(), parent=None)
    assert words in text
    assert "# Recurring errors" not in text
    assert "# The policy to build on\n" not in text


def test_the_rejections_shown_are_the_latest_of_the_direction():
    one = request().rejections[0]
    rejections = [replace(one, id=f"{k:02d}-repair", direction=d) for k in range(9) for d in ("lexical-rules", "analogy")]
    shown = re.findall(r'\{"id": "(\d\d-repair)", "reason"', prompt(rejections=tuple(rejections)))
    assert shown == ["08-repair", "07-repair", "06-repair", "05-repair", "04-repair"]


def test_policies_shown_whole_are_good_of_different_directions_and_behave_differently():
    archive = (
        entry("parent", 0.40),
        entry("twin", 0.40, behaviour="behaviour of parent"),
        entry("second", 0.39),
        entry("third", 0.38),
        entry("other", 0.30, direction="analogy"),
        entry("poor", 0.10, direction="analogy"),
    )
    text = prompt(archive=archive, parent=archive[0])
    assert re.findall(r"^# (\w+): objective", text, re.MULTILINE) == ["parent", "other", "second", "third"]
    assert len(re.findall(r'^\{"id"', text, re.MULTILINE)) == len(archive) + 1


def test_no_id_of_question_or_episode_and_no_question_stands_in_a_prompt():
    text = prompt()
    assert "canary" not in text
    assert ASKED not in text


def test_of_validation_a_request_holds_means_alone():
    held = {field.name: field.type for field in fields(ProposalRequest)}
    assert [name for name, kind in held.items() if kind is OutcomeMatrix] == ["train"]


def test_labels_stand_in_a_prompt_only_where_policies_see_them():
    assert '"domain": {"Game": 4}' in prompt()
    assert "Game" not in prompt(context=FitContext(1e-6, 20.0, 0, labels=False))


@settings(deadline=None)
@given(ANY_TEXT)
def test_nothing_others_wrote_stands_outside_a_fence(text):
    ours = outside_fences(request_message(written_by_others("plain"), LLM, ROOM).content)
    found = request_message(written_by_others(text), LLM, ROOM).content
    assert outside_fences(found) == ours
    found.encode("utf-8")


@settings(deadline=None)
@given(ANY_TEXT)
def test_reasons_stay_inside_their_fence(text):
    assert outside_fences(retry_message((text, "b")).content) == outside_fences(retry_message(("a", "b")).content)


@pytest.mark.parametrize("chars", [6_000, 12_000, 50_000])
def test_a_prompt_keeps_to_its_length_and_to_what_tells_most(chars):
    long = SOURCE + "#" * 19_000
    archive = tuple(entry(f"{k:02d}-explore", k / 1000, source=long, hypothesis="h" * 900) for k in range(90))
    text = prompt(chars, archive=archive, parent=archive[-1], rejections=request().rejections * 90, cards=(card(),) * 5)
    assert chars * 0.6 < len(text) <= chars
    assert "# The policy to build on" in text
    assert "# 89-explore: objective 0.08900 on validation" in text
    assert "# Recurring errors" in text


def test_where_there_is_no_room_the_request_itself_remains():
    assert outside_fences(prompt(0)) == prompt(0)
    assert "# Your reply" in prompt(0)


def test_what_is_left_out_is_counted():
    archive = tuple(entry(f"{k:02d}-explore", k / 1000) for k in range(90))
    text = prompt(12_000, archive=archive, parent=None)
    shown = len(re.findall(r'^\{"id": "\d\d-explore"', text, re.MULTILINE))
    assert f"{90 - shown} more are left out for length." in text


def test_the_fingerprint_follows_what_prompts_depend_on():
    names = {
        prompt_fingerprint(LLM, SANDBOX),
        prompt_fingerprint(LLM.model_copy(update={"sources": 0}), SANDBOX),
        prompt_fingerprint(LLM, SANDBOX.model_copy(update={"state_kb": 1})),
    }
    assert len(names) == 3
    assert prompt_fingerprint(LLM, SANDBOX.model_copy(update={"memory_mb": 4096})) in names


def test_equal_requests_give_equal_prompts_under_any_hash_seed():
    code = (
        "from tests.search.proposers.test_prompt import *\n"
        "print(repr((prompt(), system_message(SANDBOX), prompt_fingerprint(LLM, SANDBOX))))"
    )
    run = [sys.executable, "-c", code]
    found = {
        subprocess.run(run, cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop()) > 10_000
