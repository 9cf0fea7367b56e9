"""What an archive says of its arms, and of the best in it."""

import pytest

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.search.archive import Archive, best_entry, fold
from mesa_pipeline.search.records import Rejection
from mesa_pipeline.search.store import EVALUATED, SearchStore
from tests.search.searches import entry, search_settings


def rejection(id: str, direction: str, duplicate_of: str | None = None) -> Rejection:
    return Rejection(id, int(id[:2]), direction, "why", duplicate_of, "")


def archive(*entries, rejections=()) -> Archive:
    return Archive((entry("all", 0.4), *entries), tuple(rejections))


def arms(archive: Archive, directions=("a", "b"), **settings):
    return {arm.direction: arm for arm in archive.arms(directions, search_settings(**settings))}


def test_the_best_is_by_objective_then_by_tokens_then_the_earliest():
    low, dear, cheap, later = (
        entry("01-explore", 0.4),
        entry("02-explore", 0.5, 20.0),
        entry("03-explore", 0.5, 10.0),
        entry("04-explore", 0.5, 10.0),
    )
    assert best_entry([low, dear]).id == "02-explore"
    assert best_entry([dear, cheap, later]).id == "03-explore"


def test_the_order_of_a_sum_does_not_decide():
    dear, cheap = entry("01-explore", 0.1 + 0.2 + 0.3, 20.0), entry("02-explore", 0.3 + 0.2 + 0.1, 10.0)
    assert dear.validation.objective > cheap.validation.objective
    assert best_entry([dear, cheap]) is cheap


def test_the_frontier_is_the_policy_it_starts_with_until_something_beats_it():
    assert archive(entry("01-explore", 0.3, direction="a")).frontier.id == "all"
    assert archive(entry("01-explore", 0.5, direction="a")).frontier.id == "01-explore"


def test_improvements_are_those_that_were_the_best_when_they_came():
    found = archive(
        entry("01-explore", 0.3),
        entry("02-explore", 0.5, 20.0),
        entry("03-explore", 0.5, 20.0),
        entry("04-explore", 0.5, 10.0),
        entry("05-explore", 0.6, 30.0),
        entry("06-explore", 0.55),
    )
    assert [better.id for better in found.improvements] == ["all", "02-explore", "04-explore", "05-explore"]
    assert found.improvements[-1] is found.frontier


def test_entries_are_found_by_id_and_the_best_by_arm():
    found = archive(entry("01-explore", 0.3, direction="a"), entry("02-explore", 0.5, direction="a"))
    assert found.entry("01-explore").validation.objective == 0.3
    assert found.best_of("a") is found.entries[2]
    assert found.best_of("b") is None
    with pytest.raises(KeyError):
        found.entry("09-repair")


def test_arms_count_their_own_candidates_and_the_first_policy_is_of_none():
    found = arms(archive(entry("01-explore", 0.3, direction="a"), entry("01-repair", 0.5, direction="a")))
    assert (found["a"].pulls, found["a"].value) == (2, pytest.approx(0.4))
    assert (found["b"].pulls, found["b"].value) == (0, 0.5)


REPEATED = archive(
    entry("01-explore", 0.3, direction="a"),
    rejections=[rejection("02-explore", "b", duplicate_of="01-explore"), rejection("03-explore", "b")],
)


def test_invalid_and_repeated_candidates_are_no_pulls():
    found = arms(REPEATED)
    assert (found["b"].pulls, found["b"].duplicates, found["b"].invalid) == (0, 1, 1)


def test_by_setting_a_repeated_candidate_is_a_pull_worth_what_it_repeats():
    found = arms(REPEATED, count_duplicates=True)
    assert (found["b"].pulls, found["b"].value, found["b"].invalid) == (1, 0.3, 1)


def test_by_setting_a_candidate_that_ignores_its_direction_is_no_pull():
    found = archive(entry("01-explore", 0.3, direction="a", off_direction=("previews",)))
    assert arms(found)["a"].pulls == 1
    assert arms(found, count_off_direction=False)["a"].pulls == 0


def back_off(found: Archive, iteration: int) -> tuple[str, ...]:
    return found.backed_off(iteration, search_settings(max_rejected=3, back_off=5))


def test_an_arm_that_brings_nothing_is_left_alone_for_a_while():
    found = archive(rejections=[rejection(f"{k:02d}-explore", "a") for k in (1, 2, 4)])
    assert back_off(found, 5) == ("a",)
    assert back_off(found, 9) == ("a",)
    assert back_off(found, 10) == ()


def test_repeated_candidates_bring_nothing_either():
    found = archive(rejections=[rejection(f"{k:02d}-explore", "a", duplicate_of="all") for k in (1, 2, 3)])
    assert back_off(found, 4) == ("a",)


@pytest.mark.parametrize("entered", ["01-repair", "02-exploit", "03-repair"])
def test_an_entry_among_the_latest_three_keeps_an_arm_open(entered):
    failed = [rejection(f"{k:02d}-explore", "a") for k in (1, 2, 3)][: 3 if entered == "03-repair" else 2]
    found = archive(entry(entered, 0.3, direction="a"), rejections=failed)
    assert back_off(found, 4) == ()


def test_an_old_entry_does_not_help():
    found = archive(entry("01-explore", 0.3, direction="a"), rejections=[rejection(f"{k:02d}-explore", "a") for k in (2, 3, 4)])
    assert back_off(found, 5) == ("a",)
    assert back_off(archive(rejections=[rejection("02-explore", "a"), rejection("03-explore", "a")]), 5) == ()


def test_events_of_another_version_are_told_with_their_folder(tmp_path):
    store = SearchStore(tmp_path)
    store.events.append(EVALUATED, {"id": "01-explore", "iteration": 1, "policy": "as it was named once"})
    with pytest.raises(ArtifactError, match=rf"{tmp_path} were written by another mesa-pipeline.*delete the folder"):
        fold(store)
