"""AMA-Agent's loop, with a scripted model: what it starts from, what it adds, when it stops, and how often it asks."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mesa_pipeline.baselines.ama_agent import AmaAgent, Models, read_answer
from mesa_pipeline.baselines.ama_agent_code import WRITE, read_program
from mesa_pipeline.baselines.ama_agent_turns import chunked
from mesa_pipeline.baselines.base import RunProgram, no_programs
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import ArtifactError, ModelError, PolicyError
from mesa_pipeline.llm.metering import Cost, MeteredEmbedder, metered, metered_chat
from mesa_pipeline.llm.scripted import MISBEHAVIOURS, ScriptedModel
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.policies.sandbox.facades import SEARCH_FACADES
from mesa_pipeline.policies.sandbox.searching import search
from mesa_pipeline.structures import open_structures
from mesa_pipeline.structures.base import MemoryStructure, StoredMemory, StructureContext
from mesa_pipeline.structures.summary import SummaryState
from mesa_pipeline.types import Evidence, Step, Trajectory
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder

STEPS = tuple(Step(n, f"open drawer{n}", f"thing{n} lies there; " + "filler " * 300) for n in range(30))
HISTORY = Trajectory("t", "find the cup", STEPS)
QUESTION = "Where is thing7?"
COUNTING = "```python\nimport re\ndef search(steps):\n    return {'openings': sum('open' in s['action'] for s in steps)}\n```"


class Asked:
    """One question to AMA-Agent, and all that was said."""

    def __init__(
        self,
        settings: Settings,
        *replies: Any,
        question: str = QUESTION,
        history: Trajectory = HISTORY,
        run: RunProgram = no_programs,
        **changes: Any,
    ) -> None:
        self.model = ScriptedModel(replies)
        self.limits: list[int | None] = []
        self.ran: list[str] = []
        embedder = MeteredEmbedder(HashingEmbedder(), Words())
        section = settings.baselines.ama_agent.model_copy(update=changes)
        models = Models(metered_chat(self._chat), lambda: embedder, Words(), self._noting(run))
        self.system = AmaAgent(section, summary_of(settings), models)
        with metered() as building:
            self.memory = self.system.build(history)
        with metered() as asking:
            self.evidence: Evidence = self.system.retrieve(self.memory, question)
        self.build_cost: Cost = building.cost
        self.cost: Cost = asking.cost

    def _chat(self, role: str, schema: object, max_tokens: int | None) -> ScriptedModel:
        assert role == "recall"
        self.limits.append(max_tokens)
        return self.model

    def _noting(self, run: RunProgram) -> RunProgram:
        def noted(program: str, trajectory: Trajectory) -> str:
            self.ran.append(program)
            return run(program, trajectory)

        return noted

    @property
    def turns(self) -> list[int]:
        return [item.steps[0] for item in self.evidence.items if item.text.startswith("Step ")]

    def shown(self, verdict: int) -> list[int]:
        """The steps that the judge was shown for its nth verdict."""
        found = self.model.asked[verdict][0].content.partition("# Steps found")[2].partition("# Question")[0]
        return [int(number) for number in re.findall(r"^Step (\d+)$", found, re.MULTILINE)]


def summary_of(settings: Settings) -> MemoryStructure[SummaryState]:
    return open_structures(StructureContext(settings, HashingEmbedder))["S"]


@pytest.fixture(scope="module")
def sandbox(settings: Settings) -> Iterator[Sandbox]:
    with Sandbox(settings.policies.sandbox) as sandbox:
        if sandbox.tier != "kernel":
            pytest.skip(f"this system cannot confine a process: {sandbox.confinement}")
        yield sandbox


@pytest.fixture
def confined(sandbox: Sandbox, settings: Settings) -> RunProgram:
    def run(program: str, trajectory: Trajectory) -> str:
        return search(sandbox, settings.baselines.ama_agent.search, program, trajectory)

    return run


def test_building_asks_for_the_summary_alone(settings: Settings) -> None:
    asked = Asked(settings, "SUFFICIENT")
    assert (asked.build_cost.calls, asked.build_cost.embedded_texts) == (0, len(asked.memory.chunks))

    sessions = 4
    model = ScriptedModel(lambda messages, seed: "SUMMARY:\nStep 1: " + " ".join(f"w{n}" for n in range(400)))
    by_llm = settings.structures.summary.model_copy(update={"builder": "llm", "max_chars_per_segment": 2400})
    changed = settings.model_copy(update={"structures": settings.structures.model_copy(update={"summary": by_llm})})
    chat = metered_chat(lambda role, schema, limit: model)
    summary = open_structures(StructureContext(changed, HashingEmbedder, chat))["S"]
    models = Models(chat, HashingEmbedder, Words(), no_programs)
    system = AmaAgent(settings.baselines.ama_agent, summary, models)
    with metered() as meter:
        memory = system.build(Trajectory("t", "", STEPS[: 3 * sessions]))  # three steps fit in a session of 8,192 characters
    assert meter.cost.calls == sessions
    assert Words().count(memory.state) == settings.baselines.ama_agent.state_tokens
    assert "[...]" in memory.state


def test_short_turns_share_a_vector() -> None:
    steps = [Step(n, "", "x" * size) for n, size in enumerate((10, 10, 3000, 2100, 5, 5))]
    assert chunked(steps, 2048) == ((0, 1, 2), (3,), (4, 5))
    assert chunked(steps, 1) == tuple((n,) for n in range(6))
    assert chunked([], 10) == ()


def test_turns_that_suffice_are_judged_once(settings: Settings) -> None:
    asked = Asked(settings, "SUFFICIENT\nANSWER: in drawer 7")
    assert asked.cost.calls == 1
    assert asked.cost.notes == {"verdicts": 1, "found sufficient": 1}
    assert asked.limits == [settings.baselines.ama_agent.max_tokens]
    assert asked.evidence.draft == "in drawer 7"
    assert len(asked.turns) == settings.baselines.ama_agent.top_k
    assert 7 in asked.turns
    assert asked.turns == sorted(asked.turns) == asked.shown(0)
    texts = [item.text for item in asked.evidence.items]
    assert texts[0].startswith("State memory:\n")
    assert texts[1] == "Task:\nfind the cup"
    prompt = asked.model.asked[0][0].content
    assert "find the cup" not in prompt
    assert "characters or more left out" in prompt


def test_turns_that_the_question_names_are_read(settings: Settings) -> None:
    asked = Asked(settings, "SUFFICIENT", question="What happened at steps 3 and 29, and from step 11 to step 13?")
    assert {3, 11, 12, 13, 29} <= set(asked.turns)
    many = Asked(settings, "SUFFICIENT", question="How often was a drawer opened until step 25?", max_named=4, top_k=1)
    assert 25 in many.turns
    assert len(many.turns) <= 5


def test_the_judge_gets_what_it_asks_for(settings: Settings) -> None:
    asked = Asked(settings, "NEED_GRAPH: step 20 before=2 after=1, turns 24-25", "SUFFICIENT", top_k=1)
    assert asked.cost.calls == 2
    assert asked.cost.notes == {"verdicts": 2, "found sufficient": 1}
    assert asked.shown(0) == [7]
    assert asked.shown(1) == asked.turns == [7, 18, 19, 20, 21, 24, 25]


def test_it_asks_three_times_and_no_more(settings: Settings) -> None:
    asked = Asked(settings, *[f"NEED_GRAPH: {n}" for n in (1, 2, 3)], top_k=1)
    assert asked.cost.calls == 3
    assert asked.cost.notes == {"verdicts": 3, "verdicts used up": 1}
    assert asked.turns == [1, 2, 3, 7]
    assert asked.evidence.draft is None


@pytest.mark.parametrize("request_again", ["NEED_GRAPH: 1", "NEED_GRAPH: 99, 500-600", "NEED_GRAPH: 7"])
def test_it_stops_where_nothing_new_is_asked_for(settings: Settings, request_again: str) -> None:
    asked = Asked(settings, "NEED_GRAPH: 1", request_again, top_k=1)
    assert asked.cost.calls == 2
    assert asked.cost.notes == {"verdicts": 2, "nothing new asked for": 1}
    assert asked.turns == [1, 7]


def test_a_long_range_is_read_in_part(settings: Settings) -> None:
    asked = Asked(
        settings, "NEED_GRAPH: 0 to 500", "NEED_GRAPH: 10-29", "NEED_GRAPH: 29", top_k=1, max_turns=12, max_requested=8
    )
    assert asked.shown(1) == list(range(8))
    assert len(asked.turns) == 12
    assert asked.cost.notes["nothing new asked for"] == 1


@pytest.mark.parametrize(
    "reply",
    ["INSUFFICIENT", "I see NEED_CODE in the steps.", "", "null", "sufficient evidence is missing", "NEED_GRAPH: all of them"],
)
def test_a_verdict_that_cannot_be_read_ends_it(settings: Settings, reply: str) -> None:
    asked = Asked(settings, reply)
    assert asked.cost.notes == {"verdicts": 1, "verdicts not understood": 1}
    assert (asked.cost.calls, asked.evidence.draft, len(asked.turns)) == (1, None, 5)


def test_a_program_counts_over_the_whole_trajectory(settings: Settings, confined: RunProgram) -> None:
    asked = Asked(settings, "**NEED_CODE:** count the drawers opened", COUNTING, run=confined)
    assert asked.cost.calls == 2
    assert asked.cost.notes == {"verdicts": 1, "searches by code": 1, "programs written": 1}
    assert asked.limits == [512, 1024]
    assert asked.evidence.items[-1].text == (
        'A program searched all steps for: count the drawers opened\nIt found: {"openings": 30}'
    )
    assert len(asked.turns) == 5
    request = asked.model.asked[1][0].content
    assert "count the drawers opened" in request
    assert QUESTION in request
    assert len(re.findall(r'^{"index": \d+, ', request, re.MULTILINE)) == 3
    assert len(request) < 4000


def test_code_may_be_asked_for_after_turns(settings: Settings, confined: RunProgram) -> None:
    asked = Asked(settings, "NEED_GRAPH: 1", "NEED_CODE", COUNTING, run=confined)
    assert asked.cost.calls == 3
    assert asked.evidence.items[-1].text.startswith(f"A program searched all steps for: {QUESTION}\n")
    assert 1 in asked.turns


def test_what_went_wrong_is_fed_back(settings: Settings, confined: RunProgram) -> None:
    failing = ["```python\nimport os\n```", "no program", "```python\ndef search(steps):\n    return steps['x']\n```"]
    asked = Asked(settings, "NEED_CODE: count", *failing, run=confined)
    assert asked.cost.calls == 4
    assert asked.cost.notes == {
        "verdicts": 1,
        "searches by code": 1,
        "programs written": 3,
        "programs that failed": 3,
        "searches by code given up": 1,
    }
    last = asked.model.asked[-1]
    assert [message.role for message in last] == ["user", "assistant"] * 2 + ["user"]
    assert "imports are refused" in last[2].content
    assert "holds no program" in last[4].content
    assert not any("program" in item.text for item in asked.evidence.items)
    assert len(asked.turns) == 5


def test_a_program_that_is_mended_counts(settings: Settings, confined: RunProgram) -> None:
    asked = Asked(settings, "NEED_CODE: count", "```python\ndef search(steps):\n    return 1 / 0\n```", COUNTING, run=confined)
    assert asked.cost.calls == 3
    assert "line 2: ZeroDivisionError" in asked.model.asked[2][-1].content
    assert asked.evidence.items[-1].text.endswith('{"openings": 30}')


@pytest.mark.parametrize(
    "program",
    [
        "def search(steps):\n    return ().__class__.__base__.__subclasses__()",
        "import os\ndef search(steps):\n    return os.environ",
        "def search(steps):\n    return open('/etc/passwd').read()",
        "def search(steps):\n    return [0] * 10 ** 10",
        "def search(steps):\n    return 'x' * 10 ** 7",
        "def search(steps):\n    raise ValueError('\\x1b[2J' * 10 ** 6)",
    ],
)
def test_a_hostile_program_finds_nothing(settings: Settings, confined: RunProgram, program: str) -> None:
    asked = Asked(settings, "NEED_CODE: count", *[f"```python\n{program}\n```"] * 3, run=confined)
    assert asked.cost.notes["programs that failed"] == 3
    assert not any("A program" in item.text for item in asked.evidence.items)
    for message in asked.model.asked[-1]:
        assert message.role != "user" or len(message.content) < 5000


def test_where_nothing_confines_a_program_none_is_run(settings: Settings) -> None:
    asked = Asked(settings, "NEED_CODE: count", COUNTING)
    assert asked.cost.calls == 2
    assert asked.cost.notes["programs that nothing here can confine"] == 1
    assert len(asked.turns) == 5
    assert not asked.evidence.items[-1].text.startswith("A program")


def test_the_reason_fed_back_is_bounded(settings: Settings) -> None:
    def run(program: str, trajectory: Trajectory) -> str:
        raise PolicyError("x" * 10**5)

    asked = Asked(settings, "NEED_CODE: count", *[COUNTING] * 3, run=run)
    assert len(asked.model.asked[-1][-1].content) < 2500


@pytest.mark.parametrize("name", sorted(MISBEHAVIOURS))
def test_spoilt_replies_never_crash(settings: Settings, confined: RunProgram, name: str) -> None:
    spoil = MISBEHAVIOURS[name]
    replies = ["NEED_CODE: count", *[spoil(COUNTING)] * 3]
    if isinstance(spoil(COUNTING), Exception):
        with pytest.raises(ModelError):
            Asked(settings, *replies, run=confined)
        return
    asked = Asked(settings, *replies, run=confined)
    assert asked.cost.notes["programs written"] <= 3
    for conversation in asked.model.asked:
        for message in conversation:
            message.content.encode("utf-8")
    judged = Asked(settings, spoil("SUFFICIENT"), run=confined)
    assert judged.cost.calls == 1


def test_a_judge_that_fails_is_not_a_wrong_answer(settings: Settings) -> None:
    with pytest.raises(ModelError):
        Asked(settings, ModelError("busy"))


def test_evidence_keeps_to_its_budget(settings: Settings) -> None:
    asked = Asked(settings, "SUFFICIENT", evidence_tokens=800, state_share=0.1)
    counts = [Words().count(item.text) for item in asked.evidence.items]
    assert sum(counts) <= 800 + len(counts)
    assert counts[0] <= 80 + 2
    assert len(asked.turns) == 3
    assert 7 in asked.turns
    assert asked.evidence.truncated
    assert sum(item.is_record for item in asked.evidence.items) == 2
    assert not Asked(settings, "SUFFICIENT").evidence.truncated


def test_an_empty_trajectory_asks_nothing(settings: Settings) -> None:
    asked = Asked(settings, history=Trajectory("t", "find it", ()))
    assert asked.evidence.is_empty
    assert asked.cost.calls == 0


def test_another_embedder_is_refused(settings: Settings) -> None:
    asked = Asked(settings, "SUFFICIENT")
    stored = asked.system.encode(asked.memory)
    with pytest.raises(ArtifactError, match="other"):
        asked.system.decode(StoredMemory({**stored.payload, "embedder": "other"}, stored.arrays))
    restored = asked.system.decode(StoredMemory(json.loads(json.dumps(stored.payload)), stored.arrays))
    assert restored.trajectory == HISTORY
    assert restored.chunks == asked.memory.chunks
    assert np.array_equal(restored.vectors, asked.memory.vectors)


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("```python\ndef search(steps): return 1\n```", "def search(steps): return 1\n"),
        ("**CODE**:\n```\ndef search(steps): return 1\n```\nDone.", "def search(steps): return 1\n"),
        (
            "```python\nx = 1\n```\n```python\ndef search(steps): return 2\n```\n```text\nok\n```",
            "def search(steps): return 2\n",
        ),
        ("```py\ndef search(steps):\n    return 3", "def search(steps):\n    return 3"),
        ("def search(steps):\n    return 4", "def search(steps):\n    return 4"),
        ("<think>```python\ndef search(steps): return 0\n```</think>```python\nx = 5\n```", "x = 5\n"),
        ("I would count the steps.", None),
        ("", None),
    ],
)
def test_programs_are_read(reply: str, program: str | None) -> None:
    assert read_program(reply) == program


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("SUFFICIENT\nANSWER: the cup", "the cup"),
        ("**SUFFICIENT**\n**Answer:** two\nlines", "two\nlines"),
        ("SUFFICIENT", None),
        ("SUFFICIENT\nANSWER:  ", None),
        ("<think>ANSWER: no</think>SUFFICIENT", None),
        ("SUFFICIENT\nANSWER: _x of `y`", "x of `y`"),
    ],
)
def test_answers_are_read(reply: str, answer: str | None) -> None:
    assert read_answer(reply) == answer


def test_the_prompt_names_what_a_program_may_use() -> None:
    *names, last = SEARCH_FACADES
    assert f"The names {', '.join(names)} and {last} are there already" in WRITE.text


@pytest.mark.parametrize("reply", ["```" + " " * 300_000, "```python" + "\t" * 300_000 + "x", "``` " * 100_000])
def test_a_reply_of_nothing_but_blanks_is_read_at_once(reply: str) -> None:
    started = time.monotonic()
    assert read_program(reply) is None
    assert time.monotonic() - started < 10
