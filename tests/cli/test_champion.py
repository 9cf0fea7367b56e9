"""``mesa nightly`` and ``mesa champion`` as a person, cron or a script meets them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mesa_pipeline.artifacts import read_header, read_records, write_records
from mesa_pipeline.cli import mesa
from mesa_pipeline.errors import WorkFailed
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import read_manifest
from tests.pipeline import copy_of
from tests.stages.nights import SMALL_NIGHT

OVERRIDES = [argument for override in SMALL_NIGHT for argument in ("--set", override)]


@pytest.fixture
def evening(finished: StageContext, tmp_path: Path) -> StageContext:
    return copy_of(finished, tmp_path / "workspace")


def run(evening: StageContext, *arguments: str) -> Result:
    return CliRunner().invoke(mesa, [*arguments, "--workspace", str(evening.layout.workspace), *OVERRIDES])


def test_a_night_crowns_a_champion_and_the_next_finds_all_as_it_was(evening: StageContext):
    first = json.loads(run(evening, "nightly", "--json").stdout)["stages"]
    assert [(stage["stage"], stage["facts"]["decision"]) for stage in first[-1:]] == [("champion", "first")]
    again = json.loads(run(evening, "nightly", "--json").stdout)["stages"]
    assert [stage["stage"] for stage in again if stage["made"]] == []

    shown = json.loads(run(evening, "champion", "show", "--json").stdout)
    assert shown["champion"]["name"] == "all"
    assert len(shown["nights"]) == 1
    assert "champion of synthetic since" in run(evening, "champion", "show").output


def test_a_champion_that_got_worse_is_an_exit_code_and_a_page(evening: StageContext):
    run(evening, "nightly")
    for entry in read_manifest(evening.layout).episodes:
        path = evening.layout.outcomes(entry.key)
        worse = [{**record, "score": record["score"] / 10} for record in read_records(path, "")]
        write_records(path, read_header(path) or {}, worse)
    result = run(evening, "nightly")
    assert isinstance(result.exception, WorkFailed)
    assert "significantly worse than when it was crowned, on the same questions" in str(result.exception)
    assert Path(str(result.exception).rpartition(": ")[2]).is_file()


def test_a_policy_is_promoted_by_its_seed_and_taken_back(evening: StageContext):
    run(evening, "nightly")
    promoted = json.loads(run(evening, "champion", "promote", "--seed", "1", "--reason", "tried", "--json").stdout)
    assert (promoted["reign"], promoted["how"]) == (2, "by hand")
    back = json.loads(run(evening, "champion", "roll-back", "--json").stdout)
    assert (back["reign"], back["how"], back["name"]) == (3, "rolled back", "all")
    assert "tried" in run(evening, "champion", "show").output


@pytest.mark.parametrize("named", [[], ["--seed", "0", "--policy", "somewhere"]])
def test_a_promotion_names_one_policy(evening: StageContext, named: list[str]):
    result = run(evening, "champion", "promote", *named)
    assert result.exit_code == 2
    assert "--seed or --policy" in result.output


def test_without_a_champion_there_is_a_way_to_find_one(evening: StageContext):
    assert "mesa nightly" in run(evening, "champion", "show").output
