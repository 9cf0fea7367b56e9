"""Hindsight: what is given to the package, and the package really running with its own database, where it is installed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from mesa_pipeline.baselines import BaselineContext
from mesa_pipeline.baselines.environments import WorkerEnvironment
from mesa_pipeline.baselines.hindsight import FACTS_SCHEMA, Bank, Hindsight
from mesa_pipeline.baselines.hindsight_documents import cut_middle, documents_of
from mesa_pipeline.config import Settings
from mesa_pipeline.errors import MissingDependency, ModelError, SystemFailure
from mesa_pipeline.llm.metering import MeteredEmbedder, metered, metered_chat
from mesa_pipeline.llm.scripted import ScriptedModel
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step, Trajectory
from tests.baselines.listening import hosts, overheard
from tests.contracts.test_baselines import Words
from tests.contracts.test_structures import HashingEmbedder, bytes_of, through_disk

HISTORY = Trajectory("t", "tidy", tuple(Step(n, f"open box{n}", f"a cup{n} is there") for n in range(6)))
OTHER = Trajectory("other", "tidy", tuple(Step(n, f"open crate{n}", f"a mug{n} is there") for n in range(3)))


class Extractor:
    """Replies with the observations it is shown as world facts, or with what it is told to."""

    def __init__(self) -> None:
        self.instead: Any = None

    def __call__(self, messages: Any, seed: int) -> Any:
        if self.instead is not None:
            return self.instead
        shown = [line.partition("Observation: ")[2] for line in messages[-1].content.splitlines() if "Observation: " in line]
        absent = {"when": "N/A", "where": "N/A", "who": "N/A", "why": "N/A"}
        facts = [
            {"what": text, **absent, "fact_kind": "conversation", "fact_type": "world", "entities": [{"text": text.split()[1]}]}
            for text in shown
        ]
        return json.dumps({"facts": facts})


def system(settings: Settings, reply: Any, environments: Path, scratch: Path) -> Hindsight:
    section = settings.baselines.hindsight.model_copy(update={"document_chars": 120, "seconds": 600})
    changed = settings.model_copy(update={"baselines": settings.baselines.model_copy(update={"hindsight": section})})
    embedder = MeteredEmbedder(HashingEmbedder(), Words())
    chat = metered_chat(lambda role, schema, max_tokens: ScriptedModel(reply))
    return Hindsight.create(
        BaselineContext(changed, lambda: embedder, Words(), chat, environments=environments, scratch=scratch)
    )


def test_the_middle_of_a_long_history_is_left_out() -> None:
    sizes = len(serialize_step(HISTORY.steps[0]).text)
    assert cut_middle(HISTORY.steps, 6 * sizes).steps == HISTORY.steps
    cut = cut_middle(HISTORY.steps, 4 * sizes + 1)
    assert [step.index for step in cut.steps] == [0, 1, 4, 5]
    assert cut.truncated
    assert cut_middle((), 10).steps == ()


def test_a_step_that_is_too_long_keeps_its_beginning_and_its_end() -> None:
    text = "".join(chr(97 + n % 26) for n in range(500))
    cut = cut_middle((Step(7, "look", text),), 200)
    first, last = (step.observation for step in cut.steps)
    assert [step.index for step in cut.steps] == [7, 7]
    assert text.startswith(first)
    assert text.endswith(last)
    assert [len(serialize_step(step).text) for step in cut.steps] == [100, 91]  # the second has no action
    some = cut_middle((Step(0, "look", "short"), Step(1, "look", text), Step(2, "", "end")), 300)
    assert [step.index for step in some.steps] == [0, 1, 1, 2]
    assert sum(len(serialize_step(step).text) for step in some.steps) <= 300


def test_a_session_of_a_conversation_is_a_document(settings: Settings) -> None:
    said = ("[1 May] Ann: hi", "[1 May] Bob: hello", "[2 May] Ann: again", "[1 May] Bob: odd", "no time", "")
    talk = Trajectory("t", "", tuple(Step(n, "say", text) for n, text in enumerate(said)), "dialogue")
    documents = documents_of(talk, settings.baselines.hindsight)
    assert [passage.steps for passage in documents.passages] == [(0, 1), (2,), (3,), (4, 5)]
    assert not documents.truncated


def test_without_its_environment_it_says_how_to_make_one(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(MissingDependency, match="mesa baselines install hindsight"):
        system(settings, Extractor(), tmp_path, tmp_path).build(HISTORY)


def test_an_empty_history_needs_no_package(settings: Settings, tmp_path: Path) -> None:
    made = system(settings, Extractor(), tmp_path, tmp_path)
    assert made.retrieve(made.build(Trajectory("t", "", ())), "anything").is_empty


def test_a_model_that_keeps_to_no_format_can_be_held_to_it(settings: Settings) -> None:
    asked: list[Any] = []

    def opened(role: Any, schema: Any, max_tokens: Any) -> ScriptedModel:
        asked.append(schema)
        return ScriptedModel(Extractor())

    for constrained in (False, True):
        section = settings.baselines.hindsight.model_copy(update={"constrained": constrained})
        Hindsight(section, opened, HashingEmbedder, None, None).build_identity()
    assert asked == [None, FACTS_SCHEMA]


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return Extractor()


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Notes whom the package's process asks for."""
    with overheard("hindsight", tmp_path_factory.mktemp("heard")) as heard:
        yield heard


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hindsight")


@pytest.fixture(scope="module")
def running(settings: Settings, extractor: Extractor, heard: Path, scratch: Path) -> Iterator[Hindsight]:
    """The package, where MESA_ENVIRONMENTS names a folder with its environment; one process and one database for all."""
    folder = os.environ.get("MESA_ENVIRONMENTS")
    if not folder or not WorkerEnvironment("hindsight", Path(folder)).is_made:
        pytest.skip("set MESA_ENVIRONMENTS to the folder `environments` where `mesa baselines install hindsight` made one")
    made = system(settings, extractor, Path(folder), scratch)
    yield made
    made.close()


@pytest.fixture(scope="module")
def bank(running: Hindsight) -> Bank:
    return running.build(HISTORY)


@pytest.mark.timeout(900)
def test_it_retains_and_recalls(running: Hindsight, bank: Bank) -> None:
    assert bank.facts == 6
    assert len(bank.documents) == 3
    with metered() as meter:
        evidence = running.retrieve(bank, "Where is cup4?")
    assert meter.cost.calls == 0
    assert meter.cost.embedded_texts == 1
    assert any("cup4" in item.text and 4 in item.steps for item in evidence.items)


@pytest.mark.timeout(900)
def test_the_order_of_questions_does_not_matter_and_banks_are_apart(running: Hindsight, bank: Bank) -> None:
    with metered() as meter:
        other = running.build(OTHER)
    assert meter.cost.calls == len(other.documents)
    first, second = "Where is cup1?", "Where is mug2, and cup5?"
    before = running.retrieve(bank, first)
    assert not any("mug" in item.text for item in running.retrieve(bank, second).items)
    assert not any("cup" in item.text for item in running.retrieve(other, second).items)
    assert running.retrieve(bank, first) == before
    assert running.retrieve(running.decode(through_disk(running.encode(bank))), first) == before


@pytest.mark.timeout(900)
def test_building_again_changes_nothing(running: Hindsight, bank: Bank) -> None:
    before = running.retrieve(bank, "Where is cup1?")
    again = running.build(HISTORY)
    assert bytes_of(running.encode(again)) == bytes_of(running.encode(bank))
    assert running.retrieve(again, "Where is cup1?") == before


@pytest.mark.timeout(900)
def test_of_a_bank_that_is_not_kept_nothing_is_left_in_its_database(running: Hindsight, bank: Bank) -> None:
    other, before = running.build(OTHER), running.retrieve(bank, "Where is cup1?")
    assert rows_with(running, other.name)
    assert rows_with(running, "crate1")
    for _ in range(2):
        running.keep_only([bank])
        assert rows_with(running, other.name) == {}
        assert rows_with(running, "crate1") == {}
    assert running.retrieve(bank, "Where is cup1?") == before
    with pytest.raises(SystemFailure, match="changed or lost"):
        running.retrieve(other, "Where is mug2?")
    assert running.retrieve(running.build(OTHER), "Where is mug2?").items


@pytest.mark.timeout(900)
def test_a_bank_that_is_not_there_is_a_failure_and_not_an_empty_memory(running: Hindsight) -> None:
    with pytest.raises(SystemFailure, match=r"changed or lost; remove .*memories/hindsight"):
        running.retrieve(Bank("unknown", 3, ((0,),), False), "Where is cup1?")


@pytest.mark.timeout(900)
def test_a_database_that_was_killed_is_started_again(running: Hindsight, bank: Bank, scratch: Path) -> None:
    before, left = running.retrieve(bank, "Where is cup1?"), left_behind()
    (server,) = [each for each in psutil.process_iter(["cmdline"]) if is_server(each.info["cmdline"] or [], f"{scratch}/")]
    server.kill()
    server.wait(60)
    assert running.retrieve(bank, "Where is cup1?") == before
    assert left_behind() == left


def left_behind() -> set[Path]:
    """What starting the database has left where everybody's temporary files lie, a password among it."""
    return set(Path("/tmp").glob(".tmp*"))


def is_server(command: list[str], folder: str) -> bool:
    """Whether a command line is of PostgreSQL over data below a folder."""
    return bool(command) and command[0].endswith("/postgres") and any(folder in part for part in command)


@pytest.mark.timeout(900)
def test_a_model_that_fails_is_a_failure_and_not_a_memory(running: Hindsight, extractor: Extractor) -> None:
    extractor.instead = ModelError("busy")
    try:
        with pytest.raises((ModelError, SystemFailure), match="busy"):
            running.build(Trajectory("t2", "", HISTORY.steps[:1]))
    finally:
        extractor.instead = None


@pytest.mark.timeout(900)
def test_what_the_schema_asks_for_is_a_fact_to_the_package(running: Hindsight, extractor: Extractor) -> None:
    extractor.instead = json.dumps({"facts": [{"what": "a lamp", "fact_type": "assistant", "entities": ["lamp"]}]})
    try:
        memory = running.build(Trajectory("t3", "", HISTORY.steps[:1]))
    finally:
        extractor.instead = None
    assert [(item.text, item.steps) for item in running.retrieve(memory, "lamp?").items] == [("a lamp", (0,))]


@pytest.mark.timeout(900)
def test_a_date_in_a_question_is_understood(running: Hindsight, bank: Bank) -> None:
    """The package goes on without its temporal search where its parser of dates fails, and says so in its log alone."""
    assert running.retrieve(bank, "What happened on 1 January 2000?").items
    log = (running._scratch / "hindsight" / "worker.log").read_text(encoding="utf-8")
    assert "Temporal query analysis raised" not in log


@pytest.mark.timeout(900)
def test_it_listens_on_the_loopback_alone_and_ends_with_its_worker(running: Hindsight, bank: Bank) -> None:
    started = [process for process in psutil.process_iter() if _mentions(process, str(running._scratch))]
    assert started
    listening = [c for process in started for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert {connection.laddr.ip for connection in listening} <= {"127.0.0.1"}
    running.close()
    psutil.wait_procs(started, timeout=60)
    assert not any(process.is_running() for process in started)
    assert any("cup4" in item.text for item in running.retrieve(bank, "Where is cup4?").items)  # it starts again


@pytest.mark.timeout(900)
def test_it_asks_nobody_else_for_anything(running: Hindsight, bank: Bank, heard: Path) -> None:
    running.retrieve(bank, "Where is cup4?")
    running.close()
    assert hosts(heard) == set()


def rows_with(running: Hindsight, text: str) -> dict[str, int]:
    """How many rows have a text in any column, by table."""
    pid_file = running._scratch / "hindsight" / "pg0" / ".pg0" / "instances" / "mesa" / "data" / "postmaster.pid"
    port = int(pid_file.read_text().splitlines()[3])
    with psycopg.connect(host="127.0.0.1", port=port, user="hindsight", password="hindsight", dbname="hindsight") as connection:
        tables = connection.execute("select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'public'")
        counts = {name: _count(connection, f"select count(*) from {name} t where t::text like %s", text) for (name,) in tables}
    return {name: count for name, count in counts.items() if count}


def _count(connection: psycopg.Connection, query: str, text: str) -> int:
    (count,) = connection.execute(query, [f"%{text}%"]).fetchone()
    return count


def _mentions(process: psutil.Process, folder: str) -> bool:
    try:
        return any(folder in part for part in process.cmdline())
    except psutil.Error:
        return False
