"""Each inspection finds nothing in sound artifacts, and what it looks for once it was put there."""

import re
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import read_header, read_records, write_records
from mesa_pipeline.stages import inspection
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import read_manifest, read_questions
from mesa_pipeline.subsets import STRUCTURE_CODES
from mesa_pipeline.types import Question
from tests.pipeline import copy_of

TELLING = "the one true reference answer"


@pytest.fixture
def context(finished: StageContext, tmp_path: Path) -> StageContext:
    """A finished workspace, free to be damaged."""
    return copy_of(finished, tmp_path)


def edit(path: Path, change) -> None:
    """Rewrite an artifact's records, its header left as it was."""
    records = list(read_records(path, ""))
    write_records(path, read_header(path), change(records))


def first_entry(context: StageContext):
    return read_manifest(context.layout).episodes[0]


def first_question(context: StageContext) -> Question:
    return read_questions(context.layout, first_entry(context).key)[0]


def give_answer(context: StageContext, answer: str) -> None:
    """Make ``answer`` the reference answer of the first question."""

    def change(records):
        records[0]["questions"][0]["answer"] = answer
        return records

    edit(context.layout.episode(first_entry(context).key), change)


def test_sound_artifacts_pass_every_inspection(finished: StageContext):
    assert inspection.partial_episodes(finished) == []
    assert inspection.incomplete_questions(finished) == []
    assert inspection.repeated_questions(finished) == []
    assert inspection.impossible_outcomes(finished) == []
    assert inspection.fruitless_structures(finished) == []
    assert [inspection.lacking_copies(finished, code) for code in STRUCTURE_CODES] == [[]] * 5
    assert inspection.scored_outcomes(finished) == inspection.Scored(10 * 4 * 31, 0)
    assert inspection.answers_in_evidence(finished) == []
    assert inspection.answers_in_policy(finished, 0) == []
    assert inspection.frozen_comparison(finished, 0).evaluation.n > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda records: records[:-1], "steps"),
        (lambda records: [{"questions": records[0]["questions"][1:]}, *records[1:]], "questions"),
        (lambda records: [records[0], *reversed(records[1:])], "do not increase"),
    ],
)
def test_an_episode_cut_short_or_shuffled_is_found(context: StageContext, change, says: str):
    edit(context.layout.episode(first_entry(context).key), change)
    (problem,) = inspection.partial_episodes(context)
    assert says in problem
    assert first_entry(context).id in problem


def test_an_episode_that_is_gone_is_found(context: StageContext):
    context.layout.episode(first_entry(context).key).unlink()
    (problem,) = inspection.partial_episodes(context)
    assert "mesa ingest" in problem


@pytest.mark.parametrize("change", [lambda records: records[1:], lambda records: [records[0], *records]])
def test_an_outcome_missing_or_double_is_found(context: StageContext, change):
    edit(context.layout.outcomes(first_entry(context).key), change)
    (problem,) = inspection.incomplete_questions(context)
    assert problem == f"question {first_question(context).id!r}: 30 of 31 subsets"


def test_an_answer_only_the_evidence_knows_is_found(context: StageContext):
    give_answer(context, TELLING)
    assert inspection.answers_in_evidence(context) == []

    def leak(records):
        records[0]["items"].append({"text": f"It is\n{TELLING.upper()}.", "steps": [], "score": None, "is_record": False})
        return records

    edit(context.layout.evidence("summary", first_entry(context).key), leak)
    assert inspection.answers_in_evidence(context) == [
        f"question {first_question(context).id!r}: its answer stands in the summary evidence alone"
    ]


def test_an_answer_that_the_trajectory_says_is_no_leak(context: StageContext):
    give_answer(context, TELLING)

    def say(records):
        records[1]["o"] += TELLING
        return records

    edit(context.layout.episode(first_entry(context).key), say)
    edit(
        context.layout.evidence("raw", first_entry(context).key),
        lambda records: [
            {**records[0], "items": [{"text": TELLING, "steps": [], "score": None, "is_record": False}]},
            *records[1:],
        ],
    )
    assert inspection.answers_in_evidence(context) == []


@pytest.mark.parametrize("name", ["state.json", "policy.py"])
def test_a_policy_that_holds_an_answer_is_found(context: StageContext, name: str):
    give_answer(context, TELLING)
    with (context.layout.policy(0) / "frozen" / name).open("a") as file:
        file.write(TELLING)
    assert inspection.answers_in_policy(context, 0) == [
        f"the frozen policy holds the answer of question {first_question(context).id!r}"
    ]


@pytest.mark.parametrize("said", [False, True])
def test_a_word_that_trajectories_say_may_be_learnt(context: StageContext, said: bool):
    word = "sales_by_lighthouse"
    give_answer(context, word)
    if said:
        last = read_manifest(context.layout).episodes[-1]
        edit(context.layout.episode(last.key), lambda records: [*records[:-1], {**records[-1], "o": f"| {word} |"}])
    with (context.layout.policy(0) / "frozen" / "state.json").open("a") as file:
        file.write(word)
    assert bool(inspection.answers_in_policy(context, 0)) is not said


def test_two_questions_with_one_id_are_found_also_in_different_episodes(context: StageContext):
    taken = first_question(context).id

    def rename(records):
        records[0]["questions"][-1]["id"] = taken
        return records

    edit(context.layout.episode(read_manifest(context.layout).episodes[1].key), rename)
    assert inspection.repeated_questions(context) == [f"2 questions have the id {taken!r}"]


def test_a_structure_that_returned_nothing_at_all_is_found(context: StageContext):
    for entry in read_manifest(context.layout).episodes:
        edit(context.layout.evidence("graph", entry.key), lambda records: [{**record, "items": []} for record in records])
    (problem,) = inspection.fruitless_structures(context)
    assert "graph" in problem


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"score": 1.5}, "between 0 and 1"),
        ({"score": -0.1}, "between 0 and 1"),
        ({"score": None}, "neither a score nor a reason"),
        ({"subset": 32}, "no such subset"),
        ({"subset": 0}, "no such subset"),
        ({"question_id": "another"}, "no such question"),
        ({"tokens": -1}, "-1 tokens"),
    ],
)
def test_an_outcome_that_no_sweep_makes_is_found(context: StageContext, change: dict[str, object], says: str):
    path = context.layout.outcomes(first_entry(context).key)
    edit(path, lambda records: [{**records[0], **change}, *records[1:]])
    (problem,) = inspection.impossible_outcomes(context)
    assert says in problem


def test_a_score_that_is_no_number_is_found(context: StageContext):
    """JSON as this system writes it has none, so it can only come from elsewhere, sealed or not."""
    path = context.layout.outcomes(first_entry(context).key)
    text = path.read_text()
    path.write_text(re.sub(r'"score":[0-9.]+', '"score":NaN', text, count=1))
    assert inspection.incomplete_questions(context)


def test_unscored_outcomes_are_counted(context: StageContext):
    path = context.layout.outcomes(first_entry(context).key)
    edit(path, lambda records: [{**record, "score": None, "error": "no verdict"} for record in records])
    found = inspection.scored_outcomes(context)
    assert (found.outcomes, found.unscored) == (10 * 4 * 31, 4 * 31)
    assert found.unscored_share == pytest.approx(0.1)
    assert inspection.impossible_outcomes(context) == []
