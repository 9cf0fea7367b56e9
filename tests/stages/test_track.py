"""What of a workspace is told to a tracker, and that told twice it is the same."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from mesa_pipeline.stages.optimize import read_archive, read_frozen, read_result
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.stages.track import datasets_searched, track
from mesa_pipeline.subsets import label
from tests.pipeline import copy_of


class Memory:
    """A tracker that keeps all it is told, by search; ``gives_out`` makes it fail after so many candidates."""

    def __init__(self, gives_out: int | None = None):
        self.runs = {}
        self.tests = {}
        self.crowned = {}
        self.gives_out = gives_out

    @contextmanager
    def search(self, search):
        run = self.runs.setdefault(search.key, Run(search))
        run.is_new, run.gives_out = False, self.gives_out
        yield run

    def test(self, search, test):
        is_new = self.tests.get(search.key) != test
        self.tests[search.key] = test
        return is_new

    def promote(self, search, policy, alias):
        self.crowned[alias] = (search.key, policy.directory)


class Run:
    def __init__(self, search):
        self.search = search
        self.candidates, self.steps, self.frozen, self.is_new = {}, {}, None, False

    def candidate(self, candidate):
        if len(self.candidates) == self.gives_out:
            raise KeyboardInterrupt
        self.is_new |= candidate.name not in self.candidates
        self.candidates.setdefault(candidate.name, candidate)

    def progress(self, step, metrics):
        self.steps.setdefault(step, metrics)

    def freeze(self, policy, aliases=()):
        self.frozen = (policy, tuple(aliases))


def told(tracker):
    return {key: (run.candidates, run.steps, run.frozen) for key, run in tracker.runs.items()}


def test_every_finished_search_and_test_is_told_as_it_was_made(finished):
    tracker = Memory()
    summary = track(finished, tracker)
    assert (summary.made, summary.kept, summary.failed) == (2, 0, ())
    for seed in finished.settings.splits.seeds:
        result, archive = read_result(finished, seed), read_archive(finished, seed)
        run = tracker.runs[result.fingerprint]
        assert run.search.seed == seed
        assert run.search.params["proposer"] == result.proposer
        assert set(run.candidates) == {entry.id for entry in archive.entries} | {r.id for r in archive.rejections}
        assert sorted(run.steps) == list(range(result.iterations + 1))
        policy, aliases = run.frozen
        assert aliases[0] == f"seed-{seed}"
        assert policy.tags["mesa.manifest_sha256"] == read_frozen(finished, seed).manifest_sha256


def test_a_test_is_told_with_what_each_policy_read_for_each_question(finished):
    tracker = Memory()
    track(finished, tracker)
    seed = finished.settings.splits.seeds[0]
    tested = read_test(finished, seed)
    test = tracker.tests[read_result(finished, seed).fingerprint]
    frozen, everything = tested.row("frozen policy"), tested.row("all")
    assert test.metrics["test/J"] == pytest.approx(100 * frozen.evaluation.score)
    assert test.metrics["test of others/all/C"] == pytest.approx(everything.evaluation.tokens)
    assert [row["policy"] for row in test.tables["policies"]] == [row.evaluation.name for row in tested.comparisons]
    questions = {row["id"]: row for row in test.tables["questions"]}
    assert {id: row["reads: frozen policy"] for id, row in questions.items()} == {
        id: label(mask) for id, mask in tested.choices.items()
    }
    scores = [row["score: all"] for row in questions.values() if row["score: all"] is not None]
    assert sum(scores) / len(scores) == pytest.approx(100 * everything.evaluation.score, abs=0.01)


def test_told_again_nothing_is_new_and_stopped_it_goes_on(finished):
    whole = Memory()
    track(finished, whole)
    assert track(finished, whole).made == 0

    stopped = Memory(gives_out=2)
    with pytest.raises(KeyboardInterrupt):
        track(finished, stopped)
    stopped.gives_out = None
    assert track(finished, stopped).made == 2
    assert told(stopped) == told(whole)


def test_a_search_that_cannot_be_read_keeps_no_other_from_being_told(finished, tmp_path):
    context = copy_of(finished, tmp_path)
    result = context.layout.policy(0) / "search.json"
    result.write_text(result.read_text().replace("planned", "planed"))
    tracker = Memory()
    summary = track(context, tracker)
    assert [line.partition(":")[0] for line in summary.failed] == ["seed 0"]
    assert list(tracker.runs) == [read_result(context, 1).fingerprint]


def test_settings_that_changed_since_leave_the_searches_as_they_were(finished):
    other = replace(finished, settings=finished.settings.model_copy(update={"llm": finished.settings.llm, "profile": "paper"}))
    tracker, before = Memory(), Memory()
    track(finished, before)
    track(other, tracker)
    assert told(tracker) == told(before)
    assert {run.search.params["profile"] for run in tracker.runs.values()} == {finished.settings.profile_label}


def test_a_dataset_is_known_by_its_searches(finished):
    assert datasets_searched(finished.layout.workspace) == ("synthetic",)
    assert datasets_searched(finished.layout.workspace / "nowhere") == ()
