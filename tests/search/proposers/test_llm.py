import logging

import pytest

from mesa_pipeline.errors import MissingDependency, ModelError
from mesa_pipeline.llm.scripted import MISBEHAVIOURS, Script, ScriptedModel
from mesa_pipeline.policies.sandbox.gate import check
from mesa_pipeline.search.proposers import Proposal
from mesa_pipeline.search.proposers.llm import LlmProposer
from tests.search.proposers.requests import SETTINGS, SOURCE, entry, request, training

SANDBOX = SETTINGS.policies.sandbox
REPLY = f"I expect counts to need less.\n\n```python\n{SOURCE}```\n"
REFUSED = f"```python\nimport os\n{SOURCE}```"
EMPTY = ""


def proposer(model: ScriptedModel, **changes: int) -> LlmProposer:
    return LlmProposer(model, SETTINGS.search.llm.model_copy(update=changes), SANDBOX)


def proposed(script: Script, **changes: int) -> tuple[Proposal, ScriptedModel]:
    model = ScriptedModel(script)
    return proposer(model, **changes).propose(request()), model


def roles(proposal: Proposal) -> list[str]:
    return [message["role"] for message in proposal.exchange]


def test_a_good_reply_is_proposed_after_one_ask():
    proposal, model = proposed([REPLY])
    assert proposal.source == SOURCE
    assert roles(proposal) == ["system", "user", "assistant"]
    assert proposal.exchange[-1]["content"] == REPLY
    assert [message.content for message in model.asked[0]] == [said["content"] for said in proposal.exchange[:2]]
    words = sum(len(message.content.split()) for message in model.asked[0])
    assert proposal.spent == {"calls": 1, "prompt_tokens": words, "completion_tokens": len(REPLY.split())}


def test_equal_requests_are_asked_in_equal_words_with_the_request_s_seed():
    seeds = []
    model = ScriptedModel(lambda messages, seed: seeds.append(seed) or REPLY)
    asking = proposer(model)
    assert asking.propose(request()) == asking.propose(request())
    assert model.asked[0] == model.asked[1]
    assert seeds == [request().seed] * 2


def test_a_refused_source_is_sent_back_with_the_reasons():
    proposal, model = proposed([REFUSED, REPLY])
    assert proposal.source == SOURCE
    assert roles(proposal) == ["system", "user", "assistant", "user", "assistant"]
    assert [message.role for message in model.asked[1]] == ["system", "user", "assistant", "user"]
    assert "line 1, column 1: imports are refused: delete the line" in model.asked[1][-1].content
    assert proposal.spent["calls"] == 2


@pytest.mark.parametrize("asks", [1, 3])
def test_the_last_source_is_proposed_valid_or_not(asks):
    replies = [REFUSED.replace("os", f"os{ask}") for ask in range(asks)]
    proposal, model = proposed(replies, max_asks=asks)
    assert proposal.source.startswith(f"import os{asks - 1}\n")
    assert len(model.asked) == asks
    assert roles(proposal)[-1] == "assistant"


def test_a_source_that_holds_a_training_question_is_sent_back():
    asked = training().questions[0].text
    memorising = REPLY.replace("how many", asked)
    proposal, model = proposed([memorising, REPLY])
    assert "flagged as memorisation" in model.asked[1][-1].content
    assert proposal.source == SOURCE


def test_a_reply_without_a_source_is_answered_with_that():
    proposal, model = proposed(["I would read little.", REPLY])
    assert model.asked[1][2].content == "I would read little."
    assert "the reply holds no source" in model.asked[1][3].content
    assert proposal.source == SOURCE


def test_a_second_reply_without_a_source_leaves_the_first_one():
    proposal, _ = proposed([REFUSED, "I cannot."])
    assert proposal.source.startswith("import os\n")


def test_a_model_that_fails_leaves_no_source_and_the_reason(caplog):
    with caplog.at_level(logging.WARNING):
        proposal, _ = proposed([ModelError("longer than 60 s")])
    assert proposal.source == EMPTY
    assert proposal.failure == "longer than 60 s"
    assert proposal.exchange[-1] == {"role": "error", "content": "longer than 60 s"}
    assert proposal.spent == {"calls": 1}
    assert "scripted gave no reply: longer than 60 s" in caplog.text


def test_a_model_that_fails_on_the_second_ask_leaves_the_first_source():
    proposal, _ = proposed([REFUSED, ModelError("longer than 60 s")])
    assert proposal.source.startswith("import os\n")
    assert proposal.failure is None
    assert roles(proposal)[-1] == "error"


def test_an_endpoint_that_is_gone_stops_and_the_same_request_goes_on_when_it_is_back():
    model = ScriptedModel([MissingDependency("no endpoint"), REPLY])
    asking = proposer(model)
    with pytest.raises(MissingDependency, match="no endpoint"):
        asking.propose(request())
    assert asking.propose(request()).source == SOURCE
    assert model.asked[0] == model.asked[1]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        *((name, SOURCE) for name in ("fenced twice", "several blocks", "thinking aloud")),
        *((name, EMPTY) for name in ("empty", "prose only", "one megabyte", "timeout")),
        *((name, None) for name in ("truncated", "injection", "lone surrogates", "endless loop")),
    ],
)
def test_no_misbehaviour_stops_it(name, source):
    spoilt = MISBEHAVIOURS[name](REPLY)
    proposal, model = proposed([spoilt, spoilt])
    assert source is None or proposal.source == source
    for said in (*proposal.exchange, *({"content": m.content} for asked in model.asked for m in asked)):
        said["content"].encode("utf-8")
        assert len(said["content"]) <= SETTINGS.search.llm.max_prompt_chars


def test_every_misbehaviour_but_an_endless_loop_is_seen_through_by_a_second_good_reply():
    for name, spoil in MISBEHAVIOURS.items():
        if name not in ("endless loop", "timeout"):
            proposal, _ = proposed([spoil(REPLY), REPLY])
            assert proposal.source == SOURCE, name
            assert check(proposal.source) == ()


def test_what_a_model_wrote_cannot_speak_in_another_role():
    _, model = proposed([MISBEHAVIOURS["injection"]("no code"), REPLY])
    assert not any("<|im_start|>" in message.content for message in model.asked[1])


def test_prompts_keep_to_their_length_when_the_archive_is_long():
    long = "#" * 20_000
    archive = tuple(entry(f"{k:02d}-explore", k / 1000, source=long, hypothesis="h" * 600) for k in range(90))
    model = ScriptedModel([REPLY])
    proposer(model, max_prompt_chars=30_000).propose(request(archive=archive, parent=archive[-1]))
    assert 20_000 < sum(len(message.content) for message in model.asked[0]) <= 30_000


def test_its_name_tells_the_model_and_the_wording():
    asking = proposer(ScriptedModel([], "qwen"))
    assert asking.name.startswith("llm:qwen:")
    assert asking.name == proposer(ScriptedModel([], "qwen")).name
    assert asking.name != proposer(ScriptedModel([], "qwen"), sources=1).name


def test_its_code_is_not_trusted():
    assert not proposer(ScriptedModel([])).trusted
