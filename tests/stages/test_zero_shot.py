"""The zero-shot row: tested beside the others, shown everywhere, and whole or not there at all."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError, ModelError
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import optimize
from mesa_pipeline.stages.report import gather, report
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import read_manifest, read_questions
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.stages.test import test as run_test
from mesa_pipeline.subsets import encode
from mesa_pipeline.tracking import NullTracker
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import Exchange, MisbehavingServer, say, status
from tests.pipeline import SMALL, copy_of

SEED = 0
ROW = "LLM zero-shot"


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(otherwise=say("S, V")) as server:
        yield server


@pytest.fixture
def context(server: MisbehavingServer, finished: StageContext, tmp_path: Path) -> StageContext:
    overrides = [*SMALL, "splits.seeds=[0]", "policies.zero_shot=true", f"llm.chat.base_url={server.base_url}"]
    overrides += ["llm.chat.max_attempts=1", "llm.chat.max_concurrency=4", "llm.chat.model=chooser"]
    copied = copy_of(finished, tmp_path)
    return StageContext(copied.layout, load_settings(REPOSITORY / "params.yaml", overrides, {}))


def asked_about(context: StageContext) -> list[str]:
    entries = read_manifest(context.layout).entries(read_split(context, SEED).test)
    return [question.text for entry in entries for question in read_questions(context.layout, entry.key)]


def test_the_row_is_in_every_table_with_the_model_s_name(context: StageContext, server: MisbehavingServer):
    assert optimize(context, SEED, NullTracker()).kept == 1
    assert run_test(context, SEED, NullTracker()).made == 1
    result = read_test(context, SEED)
    assert set(result.others[ROW]) == {encode("SV")}
    assert result.row(ROW).evaluation.kind == "zero_shot"
    assert len(server.requests) == len(set(asked_about(context)))

    report(context)
    folder = context.layout.report
    assert json.loads((folder / "metrics.json").read_text())["zero_shot_score"] == pytest.approx(
        result.row(ROW).evaluation.score, abs=1e-6
    )
    for table in ("policies", "ladder"):
        (path,) = folder.rglob(f"{table}.csv")
        assert [row for row in csv.reader(path.open()) if row[0] == ROW]
    document = (folder / "report.md").read_text()
    assert re.search(rf"^\| {ROW} \|", document, re.MULTILINE)
    assert gather(context).provenance["zero-shot selector"].startswith("chooser (temperature 0")


def test_the_row_keeps_the_name_of_the_model_that_chose(context: StageContext):
    run_test(context, SEED, NullTracker())
    changed = context.settings.llm.chat.model_copy(update={"model": "another"})
    llm = context.settings.llm.model_copy(update={"chat": changed})
    later = StageContext(context.layout, context.settings.model_copy(update={"llm": llm}))
    assert gather(later).provenance["zero-shot selector"].startswith("chooser")
    run_test(later, SEED, NullTracker())
    assert gather(later).provenance["zero-shot selector"].startswith("another")


def test_questions_without_a_reply_stop_the_test_and_the_rerun_asks_for_them_alone(
    context: StageContext, server: MisbehavingServer
):
    context.layout.test(SEED).unlink()
    spoilt = asked_about(context)[2]

    def all_but_one(exchange: Exchange) -> None:
        (status(500, "out of memory") if spoilt in exchange.request.text else say("T"))(exchange)

    server.otherwise = all_but_one
    with pytest.raises(ModelError, match=r"1 of \d+ requests got no reply.*out of memory.*mesa test --seed 0"):
        run_test(context, SEED, NullTracker())
    with pytest.raises(ArtifactError):
        read_test(context, SEED)
    server.otherwise = say("T")
    server.requests.clear()
    run_test(context, SEED, NullTracker())
    assert [spoilt in request.text for request in server.requests] == [True]
    assert set(read_test(context, SEED).others[ROW]) == {encode("T")}
