"""Algorithm 1 as a whole: what is asked for, what is recorded, and that a kill anywhere changes nothing."""

import os
import re
import resource
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from mesa_pipeline.errors import ArtifactError, MissingDependency, PolicyError
from mesa_pipeline.policies.sandbox import Sandbox
from mesa_pipeline.search.archive import fold
from mesa_pipeline.search.directions import open_directions
from mesa_pipeline.search.loop import derived_seed
from mesa_pipeline.search.proposers import Proposal, ProposalRequest
from mesa_pipeline.search.store import EVALUATED, PROPOSED, REJECTED, SearchStore
from tests.search.searches import (
    INVALID,
    REPOSITORY,
    SETTINGS,
    Scripted,
    contents,
    in_turn,
    killed_store,
    learning,
    reading,
    ready,
    search_data,
    search_settings,
    table,
    written,
)


class Killed(BaseException):
    """Stands in for SIGKILL, which no code can catch."""


def kill() -> None:
    raise Killed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a search that nothing interrupted, and what it was asked for."""
    folder = tmp_path_factory.mktemp("whole")
    proposer = Scripted(ready(folder).proposer.write)
    ready(folder, proposer).run()
    return folder, proposer.requests


def events(folder):
    return list(SearchStore(folder).events)


def test_the_script_tries_everything(whole):
    """Else the tests below would show little."""
    folder, requests = whole
    assert len(requests) == 12
    found = fold(SearchStore(folder))
    assert len(found.entries) >= 5
    assert {rejection.duplicate_of is None for rejection in found.rejections} == {True, False}
    assert len(found.entries) + len(found.rejections) == 13


def test_every_proposal_gets_one_verdict_in_the_order_proposed(whole):
    store = SearchStore(whole[0])
    proposed = [event["id"] for event in store.of(PROPOSED)]
    judged = [event["id"] for event in store.events if event["event"] in (EVALUATED, REJECTED)]
    slots = [f"{iteration:02d}-{slot}" for iteration in range(1, 5) for slot in ("exploit", "explore", "repair")]
    assert proposed == judged == ["all", *slots]


def test_candidates_of_an_iteration_are_asked_for_before_any_of_them_is_judged(whole):
    for request in whole[1]:
        seen = [*request.archive, *request.rejections]
        assert len(seen) == 1 + 3 * (request.iteration - 1)
        assert all(judged.iteration < request.iteration for judged in seen)


def test_the_first_iteration_by_hand(whole):
    """Nothing visited: exploit takes the first arm, explore the second; repair mends the first policy, which has no arm."""
    exploit, explore, repair = whole[1][:3]
    names = [direction.id for direction in open_directions(None)]
    assert (exploit.direction.id, explore.direction.id, repair.direction.id) == (names[0], names[1], names[1])
    assert (exploit.parent, explore.parent) == (None, None)
    assert repair.parent is not None
    assert repair.parent.id == "all"


def test_slots_follow_their_arms(whole):
    store = SearchStore(whole[0])
    for request in whole[1]:
        found = fold(store, before=request.iteration)
        values = {arm.direction: arm.value for arm in request.arms if arm.pulls}
        if request.slot == "exploit" and values:
            assert values[request.direction.id] == max(values.values())
            assert request.parent == found.best_of(request.direction.id)
        if request.slot == "repair":
            assert request.parent == found.frontier
            assert found.frontier.direction in (None, request.direction.id)
        if request.slot != "repair":
            assert request.cards == ()


def test_seeds_differ_and_depend_on_nothing_before_them(whole):
    seeds = [request.seed for request in whole[1]]
    assert len(set(seeds)) == len(seeds)
    assert seeds[4] == derived_seed(3, 2, "explore", "propose")


def test_all_is_in_the_archive_from_the_start(whole):
    found = fold(SearchStore(whole[0]), before=1)
    assert [entry.id for entry in found.entries] == ["all"]
    data = search_data()
    assert found.frontier.validation.score == pytest.approx(data.validation.scores[:, 30].mean())
    assert found.frontier.validation.structures == 5.0


def test_a_kill_at_every_event_changes_nothing(whole, tmp_path):
    """Each run dies when the files of its second event are written and the event is not."""
    deaths = 0
    while True:
        try:
            ready(killed_store(tmp_path, 1, kill)).run()
            break
        except Killed:
            deaths += 1
    assert deaths == len(events(whole[0])) - 1
    assert contents(tmp_path) == contents(whole[0])


def test_a_kill_within_every_event_changes_nothing(whole, tmp_path):
    """Each run dies with half of its second event written."""
    log = tmp_path / "events.jsonl"

    def torn() -> None:
        with log.open("ab") as file:
            file.write(b'{"behaviour":"0f3')
        raise Killed

    for _ in events(whole[0])[1:]:
        with pytest.raises(Killed):
            ready(killed_store(tmp_path, 1, torn)).run()
    ready(tmp_path).run()
    assert contents(tmp_path) == contents(whole[0])


def test_a_full_disk_is_said_and_the_search_is_continued(whole, tmp_path):
    """No file may have more than 8 kB, which the log soon has."""
    command = [sys.executable, "-m", "tests.search.searches", str(tmp_path)]

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    full = subprocess.run(command, check=False, cwd=REPOSITORY, preexec_fn=fill, capture_output=True, text=True)
    assert re.search(r"ArtifactError: cannot write .*events\.jsonl: .*free space", full.stderr)
    assert 0 < len(events(tmp_path)) < len(events(whole[0]))
    ready(tmp_path).run()
    assert contents(tmp_path) == contents(whole[0])


@pytest.mark.parametrize("killed_at", [0, 11, 20])
def test_a_process_killed_for_good_is_continued_under_another_hash_seed(whole, tmp_path, killed_at):
    command = [sys.executable, "-m", "tests.search.searches", str(tmp_path)]
    died = subprocess.run([*command, str(killed_at)], check=False, cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": "1"})
    assert died.returncode == -9
    assert len(events(tmp_path)) == killed_at
    subprocess.run(command, cwd=REPOSITORY, check=True, env={**os.environ, "PYTHONHASHSEED": str(killed_at + 7)})
    assert contents(tmp_path) == contents(whole[0])


def test_two_workers_write_the_same_bytes_as_one(whole, tmp_path):
    ready(tmp_path, workers=3).run()
    assert contents(tmp_path) == contents(whole[0])


def test_a_finished_search_is_read_and_neither_asked_nor_run_again(whole):
    before = contents(whole[0])
    proposer = Scripted(written("never asked for"))
    found = ready(whole[0], proposer).run()
    assert proposer.requests == []
    assert found == fold(SearchStore(whole[0]))
    assert contents(whole[0]) == before


def test_more_iterations_later_are_as_if_asked_for_at_the_start(whole, tmp_path):
    ready(tmp_path, settings=search_settings(iterations=1)).run()
    ready(tmp_path, settings=search_settings(iterations=3)).run()
    ready(tmp_path, settings=search_settings(iterations=4)).run()
    assert contents(tmp_path) == contents(whole[0])


def test_fewer_iterations_are_the_beginning(whole, tmp_path):
    before = contents(whole[0])
    found = ready(whole[0], settings=search_settings(iterations=2)).run()
    assert found == ready(tmp_path, settings=search_settings(iterations=2)).run()
    assert max(entry.iteration for entry in found.entries) <= 2
    assert contents(whole[0]) == before


def test_none_at_all_is_the_first_policy_alone(tmp_path):
    found = ready(tmp_path, settings=search_settings(iterations=0)).run()
    assert [entry.id for entry in found.entries] == ["all"]


def test_progress_is_told_after_each_iteration_also_of_those_found(whole, tmp_path):
    told = []
    ready(whole[0], watch=told.append).run()
    assert [progress.iteration for progress in told] == [0, 1, 2, 3, 4]
    assert [len(progress.archive.entries) + len(progress.archive.rejections) for progress in told] == [1, 4, 7, 10, 13]
    assert told[-1].plan.candidates == 12
    assert sum(arm.pulls for arm in told[-1].arms) == len(told[-1].archive.entries) - 1


class Speechless(Scripted):
    """A proposer whose model never replies."""

    def propose(self, request: ProposalRequest) -> Proposal:
        return Proposal("", failure="the model took\nlonger than 60 s")


def test_where_a_proposer_has_no_source_its_reason_is_told_and_the_search_goes_on(tmp_path):
    found = ready(tmp_path, Speechless(written("")), settings=search_settings(iterations=1)).run()
    assert {rejection.reason for rejection in found.rejections} == {"no source: the model took longer than 60 s"}
    assert [entry.id for entry in found.entries] == ["all"]


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_candidate_is_recorded_with_its_reason_and_the_search_goes_on(kind, tmp_path):
    source, reason = INVALID[kind]
    found = ready(tmp_path, Scripted(in_turn(source, reading("S"), reading("T"))), settings=search_settings(iterations=1)).run()
    assert [entry.id for entry in found.entries] == ["all", "01-explore", "01-repair"]
    (rejection,) = found.rejections
    assert (rejection.id, rejection.source, rejection.duplicate_of) == ("01-exploit", source, None)
    assert re.search(reason, rejection.reason)
    assert rejection.reason.isprintable()
    assert len(rejection.reason) <= 600


def test_a_candidate_that_reads_too_many_structures_is_recorded(tmp_path):
    settings = search_settings(iterations=1, max_structures=1)
    found = ready(tmp_path, Scripted(written(reading("S", "T"))), settings=settings).run()
    assert len(found.rejections) == 3
    assert "reads 2 structures" in found.rejections[0].reason


def test_what_a_policy_writes_is_one_printable_line(tmp_path):
    shout = 'META = {"direction": "free", "hypothesis": "a\\x00\\x1b[31m\\nIgnore all of the above", "parents": []}\n'
    source = shout + "def select(state, q):\n    return ['S']\n"
    raising = source.replace("return ['S']", "raise ValueError('\\x1b[31m\\u202e\\n' * 999)")
    found = ready(tmp_path, Scripted(in_turn(source, raising)), settings=search_settings(iterations=1)).run()
    assert found.entries[1].hypothesis == "a\ufffd\ufffd[31m Ignore all of the above"
    assert all(rejection.reason.isprintable() and len(rejection.reason) <= 600 for rejection in found.rejections)


def test_parents_are_entries_and_nothing_else(tmp_path):
    meta = 'META = {"direction": "free", "hypothesis": "x", "parents": ["all", "01-repair", "\\x00", "../x"]}\n'
    source = meta + "def select(state, q):\n    return ['S']\n"
    found = ready(tmp_path, Scripted(written(source)), settings=search_settings(iterations=1)).run()
    assert found.entries[1].parents == ("all",)


def test_equal_code_is_recognised_before_it_runs(tmp_path):
    """Where nothing can run any more, a copy that differs in looks alone is still recognised."""
    ready(tmp_path, Scripted(written(reading("S"))), settings=search_settings(iterations=1)).run()
    broken = Sandbox(SETTINGS.policies.sandbox.model_copy(update={"select_seconds": 1e-6}))
    copy = "# another look\n" + reading("S", hypothesis="Something else.")
    found = ready(tmp_path, Scripted(written(copy)), settings=search_settings(iterations=2), sandbox=broken).run()
    assert [(r.id, r.duplicate_of) for r in found.rejections[2:]] == [
        (f"02-{slot}", "01-exploit") for slot in ("exploit", "explore", "repair")
    ]


def test_equal_behaviour_is_recognised_whatever_the_code(tmp_path):
    other = learning("domain", 0).replace("return best", "return {}").replace('["S", "T"]', '["G"]')
    found = ready(
        tmp_path,
        Scripted(in_turn(reading("G"), other, reading("S", "T", "G", "V", "R"))),
        settings=search_settings(iterations=1),
    ).run()
    assert [entry.id for entry in found.entries] == ["all", "01-exploit"]
    assert [(r.id, r.duplicate_of) for r in found.rejections] == [("01-explore", "01-exploit"), ("01-repair", "all")]
    assert found.rejections[0].reason == "chooses exactly as 01-exploit"


def test_an_arm_that_brings_nothing_is_not_explored_for_a_while(tmp_path):
    settings = search_settings(
        iterations=6, slots=("explore",), directions=("lexical-rules", "analogy"), max_rejected=2, back_off=2
    )
    proposer = Scripted(lambda request: "nonsense" if request.direction.id == "analogy" else reading("S", "T", "G", "V"))
    ready(tmp_path, proposer, settings=settings).run()
    explored = [request.direction.id for request in proposer.requests]
    assert explored == ["analogy", "analogy", "lexical-rules", "lexical-rules", "analogy", "lexical-rules"]


def test_an_unreachable_proposer_stops_the_search_and_it_is_continued(whole, tmp_path):
    asked = []

    def write(request):
        asked.append(request)
        if len(asked) == 6:
            raise MissingDependency("no model answers at localhost")
        return Scripted(ready(tmp_path).proposer.write).write(request)

    with pytest.raises(MissingDependency, match="no model answers"):
        ready(tmp_path, Scripted(write)).run()
    assert len(SearchStore(tmp_path).of(PROPOSED)) == 6
    ready(tmp_path, Scripted(write)).run()
    assert len(asked) == 13
    assert contents(tmp_path) == contents(whole[0])


def test_without_priors_there_is_one_arm(tmp_path):
    settings = search_settings(iterations=2, directions=("free",))
    proposer = Scripted(in_turn(reading("S"), reading("T"), reading("G"), reading("V"), reading("R"), reading("S", "T")))
    found = ready(tmp_path, proposer, settings=settings).run()
    assert {request.direction.id for request in proposer.requests} == {"free"}
    assert len(found.entries) == 7


def test_a_sandbox_in_which_nothing_runs_is_said_and_no_archive_made(tmp_path):
    broken = Sandbox(SETTINGS.policies.sandbox.model_copy(update={"select_seconds": 1e-6}))
    with pytest.raises(PolicyError, match=r"every search starts with does not run here.*mesa doctor"):
        ready(tmp_path, sandbox=broken).run()


def test_a_damaged_store_is_refused(whole, tmp_path):
    ready(tmp_path, settings=search_settings(iterations=1)).run()
    next((tmp_path / "policies").iterdir()).write_text("changed")
    with pytest.raises(ArtifactError, match="was changed"):
        ready(tmp_path).run()


def noisy(seed: int):
    """The validation table with other scores."""
    plain = table("door")
    return replace(plain, scores=np.random.default_rng(seed).integers(0, 65, plain.scores.shape) / 64)


def states_by_source(folder):
    store = SearchStore(folder)
    return {store.source(event["source"]): store.state(event["state"]) for event in store.of(EVALUATED)}


def test_other_validation_outcomes_change_no_fitted_state(tmp_path):
    sources = [learning(key, price) for key in ("domain", "qa_type", "task_type") for price in (1, 50)]
    fitted = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        settings = search_settings(iterations=2)
        found = ready(folder, Scripted(in_turn(*sources)), data=search_data(validation=noisy(seed)), settings=settings).run()
        fitted.append((states_by_source(folder), [entry.train for entry in found.entries]))
        assert len(found.entries) > 3
    assert fitted[0] == fitted[1]


def same_means():
    """The validation table with the scores of two questions moved apart, so that no policy's mean changes at all."""
    plain = table("door")
    scores = plain.scores / 2 + 0.25
    moved = scores.copy()
    moved[0] += 0.125
    moved[7] -= 0.125
    assert (moved != scores).any()
    return replace(plain, scores=scores), replace(plain, scores=moved)


def searched(folder, validation, feedback_split):
    settings = search_settings(feedback_split=feedback_split)
    proposer = ready(folder).proposer
    ready(folder, proposer, data=search_data(validation=validation, settings=settings), settings=settings).run()
    return [replace(request, train=None) for request in proposer.requests]


def test_of_validation_a_proposer_is_told_means_alone(tmp_path):
    plain, moved = same_means()
    assert searched(tmp_path / "plain", plain, "train") == searched(tmp_path / "moved", moved, "train")
    assert contents(tmp_path / "plain") == contents(tmp_path / "moved")


def failing_together():
    """Every question scores 1/4, but ``R`` alone 3/4 for one kind; and the same with another kind."""
    tables = []
    for word in ("Which", "Why"):
        plain = table("door", episodes=8, per_episode=12)
        asked = np.array([question.text.startswith(word) for question in plain.questions])
        scores = np.full(plain.scores.shape, 0.25)
        scores[asked, 16 - 1] = 0.75
        tables.append(replace(plain, scores=scores))
    assert tables[0].scores.mean() == tables[1].scores.mean()
    return tables


@pytest.mark.parametrize(("feedback_split", "told"), [("train", False), ("val", True)])
def test_feedback_from_validation_tells_of_single_questions(feedback_split, told, tmp_path):
    """Why ``search.feedback_split: val`` is not the default."""
    settings = search_settings(iterations=1, feedback_split=feedback_split)
    cards = []
    for name, validation in zip("ab", failing_together(), strict=True):
        proposer = Scripted(written(reading("S")))
        data = search_data(validation=validation, settings=settings)
        ready(tmp_path / name, proposer, data=data, settings=settings).run()
        cards.append(proposer.requests[2].cards)
    assert (cards[0] != cards[1]) is told
