"""Nights over small data: what is made, who reigns, and that nothing is made twice, learnt twice or seen too early."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mesa_pipeline.api import Mesa
from mesa_pipeline.artifacts import read_header, read_records, slug, write_records
from mesa_pipeline.errors import ArtifactError, ConfigError
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import load_frozen
from mesa_pipeline.stages.champion import challenge, promote, re_evaluate, roll_back
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.night_page import PAGE
from mesa_pipeline.stages.optimize import FROZEN_FOLDER, optimize
from mesa_pipeline.stages.reigns import Throne, read_champion
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.stages.tonight import challenger_folder
from mesa_pipeline.stages.track import track
from mesa_pipeline.tracking import NullSearchRun, NullTracker, TrackedPolicy, TrackedSearch, TrackedTest
from mesa_pipeline.types import Step, Trajectory
from tests.pipeline import copy_of
from tests.stages.nights import at_night, context_of, last_night, night

SEARCHED = "search.iterations=1"
ELEVEN = "datasets.synthetic.episodes=11"
DRAWER = Trajectory("mine", "Leave the house", (Step(0, "open drawer", "It holds a brass key."),))


class TellingTracker(NullTracker):
    """Remembers which aliases were pointed at what, and what was told of nights."""

    def __init__(self) -> None:
        self.aliases: list[tuple[str, Path]] = []
        self.tests: list[tuple[TrackedSearch, TrackedTest]] = []

    @contextmanager
    def search(self, search: TrackedSearch) -> Iterator["TellingRun"]:
        yield TellingRun(self.aliases)

    def test(self, search: TrackedSearch, test: TrackedTest) -> bool:
        self.tests.append((search, test))
        return True

    def promote(self, search: TrackedSearch, policy: TrackedPolicy, alias: str) -> None:
        self.aliases.append((alias, policy.directory))


class TellingRun(NullSearchRun):
    """The search of a ``TellingTracker``."""

    def __init__(self, aliases: list[tuple[str, Path]]) -> None:
        self._aliases = aliases

    def freeze(self, policy: TrackedPolicy, aliases: Sequence[str] = ()) -> None:
        self._aliases.extend((alias, policy.directory) for alias in aliases)


@pytest.fixture(scope="module")
def first_night(finished: StageContext, tmp_path_factory: pytest.TempPathFactory) -> StageContext:
    """A workspace after its first night, whose champion reads all five structures; do not change it."""
    context = context_of(copy_of(finished, tmp_path_factory.mktemp("nights")).layout.workspace)
    night(context)
    return context


@pytest.fixture(scope="module")
def challenged(first_night: StageContext, tmp_path_factory: pytest.TempPathFactory) -> StageContext:
    """The same with better outcomes for whoever reads less, and a challenger that does; do not change it."""
    context = later(copy_of(first_night, tmp_path_factory.mktemp("challenged")), SEARCHED)
    rescore(context, 0.5)
    challenge(context, NullTracker())
    return context


@pytest.fixture
def evening(first_night: StageContext, tmp_path: Path) -> StageContext:
    """The same, free to be changed."""
    return copy_of(first_night, tmp_path / "workspace")


def later(context: StageContext, *overrides: str) -> StageContext:
    """The same workspace with other settings."""
    return context_of(context.layout.workspace, *overrides)


def content(context: StageContext) -> dict[str, bytes]:
    """Every file that says who reigns and who challenges."""
    folders = (context.layout.champion, context.layout.root / "nightly")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(context.layout.root)): path.read_bytes() for path in files}


def rescore(context: StageContext, change: float, only: set[str] | None = None) -> None:
    """Outcomes as another reader would have given them: every subset but all five scores otherwise. Searches are made anew."""
    for searched in (context.layout.root / "nightly" / "policies", context.layout.root / "policies"):
        shutil.rmtree(searched, ignore_errors=True)
    for entry in read_manifest(context.layout).episodes:
        path = context.layout.outcomes(entry.key)
        if only is None or entry.id in only:
            moved = [
                record if record["subset"] == 31 else {**record, "score": min(1.0, max(0.0, record["score"] + change))}
                for record in read_records(path, "")
            ]
            write_records(path, read_header(path) or {}, moved)


def test_the_first_challenger_is_champion_and_was_not_judged_on_what_it_was_made_on(first_night: StageContext):
    found, reign = last_night(first_night), Throne(first_night.layout).reign(1)
    split = read_split(replace(first_night, layout=replace(first_night.layout, nightly=True)), 0)
    assert (found.contest.decision, found.tenure, reign.since) == ("first", 1, at_night(1).isoformat())
    assert set(reign.made_on) == {*split.train, *split.val}
    assert set(Throne(first_night.layout).baseline(1).policy.episodes) == set(split.test)


def test_a_night_in_which_nothing_changed_makes_nothing(evening: StageContext):
    before = content(evening)
    done = night(evening, 2)
    assert {stage: summary.made for stage, summary in done.items() if summary.made} == {}
    assert content(evening) == before
    assert str(done["champion"].facts["verdict"]).startswith("Nothing changed since the night of ")


def test_a_new_episode_is_all_that_is_built_and_swept(evening: StageContext):
    grown = later(evening, ELEVEN)
    done = night(grown, 2)
    builds = {stage: (s.made, s.kept) for stage, s in done.items() if stage.startswith(("build", "retrieve", "ingest"))}
    assert set(builds.values()) == {(1, 10)}
    assert (done["sweep"].made, done["sweep"].kept) == (4 * 31, 10 * 4 * 31)
    assert last_night(grown).changes.added == ("synthetic-0010",)


def test_a_changed_episode_is_noticed_and_one_that_is_gone_too(evening: StageContext):
    """Another length changes what every question asks: each episode has the same id and other fingerprints."""
    changed = later(evening, "datasets.synthetic.steps=14", "datasets.synthetic.episodes=9")
    of_the_last = f"{slug('synthetic-0009')}*"
    assert list(evening.layout.root.rglob(of_the_last))
    night(changed, 2)
    found = last_night(changed).changes
    assert set(found.changed) <= {f"synthetic-{number:04d}" for number in range(9)}
    assert found.changed
    assert found.removed == ("synthetic-0009",)
    assert list(evening.layout.root.rglob(of_the_last)) == [], "no file of it is left"


def test_a_champion_survives_the_loss_of_its_search(evening: StageContext):
    shutil.rmtree(evening.layout.root / "nightly")
    shutil.rmtree(evening.layout.root / "policies", ignore_errors=True)
    champion = read_champion(evening.layout)
    assert champion is not None
    frozen = load_frozen(champion.folder, open_sandbox(evening.settings.policies.sandbox))
    assert frozen.name == champion.name
    answer = Mesa(evening.layout.workspace, settings=evening.settings).ask("What does the drawer hold?", DRAWER)
    assert answer.answer.text


def test_the_champion_answers_unless_a_seed_or_a_policy_is_asked_for(evening: StageContext):
    workspace, settings = evening.layout.workspace, evening.settings
    assert "champion of synthetic since 2030-01-01" in Mesa(workspace, settings=settings, dataset="synthetic").policy
    assert Mesa(workspace, "S+T", settings, dataset="synthetic").policy == "S+T"
    assert Mesa(workspace, settings=settings, dataset="synthetic", seed=1).policy == "split seed 1 of synthetic"
    with pytest.raises(ArtifactError, match="mesa optimize --dataset synthetic --seed 3"):
        Mesa(workspace, settings=settings, dataset="synthetic", seed=3)
    with pytest.raises(ConfigError, match="no policy beside it"):
        Mesa(workspace, "S+T", settings, dataset="synthetic", seed=0)


def test_a_better_challenger_takes_over_and_a_person_can_take_that_back(challenged: StageContext, tmp_path: Path):
    evening, tracker = later(copy_of(challenged, tmp_path), SEARCHED), TellingTracker()
    re_evaluate(evening, tracker, lambda: at_night(2))
    found, throne = last_night(evening), Throne(evening.layout)
    assert (found.contest.decision, found.tenure, found.contest.number) == ("promoted", 2, 1)
    assert found.contest.difference is not None
    assert found.contest.difference.low > 0
    assert tracker.aliases[-1] == ("champion", throne.frozen_folder(2))

    before = content(evening)
    re_evaluate(evening, tracker, lambda: at_night(3))
    assert content(evening) == before

    back = roll_back(evening, tracker, now=lambda: at_night(4))
    assert (back.number, back.how, back.manifest_sha256) == (3, "rolled back", throne.reign(1).manifest_sha256)
    assert tracker.aliases[-1] == ("champion", throne.frozen_folder(3))
    champion = read_champion(evening.layout)
    assert champion is not None
    assert champion.folder == throne.frozen_folder(3)
    assert re_evaluate(evening, tracker, lambda: at_night(5)).facts["decision"] == "promoted"


def test_a_night_is_told_with_what_champion_and_challenger_read_for_each_question(challenged: StageContext, tmp_path: Path):
    evening, tracker = later(copy_of(challenged, tmp_path), SEARCHED), TellingTracker()
    re_evaluate(evening, tracker, lambda: at_night(2))
    ((search, told),) = tracker.tests
    made, found = last_night(evening), last_night(evening).contest
    challenger = load_frozen(challenger_folder(evening), open_sandbox(evening.settings.policies.sandbox))
    assert (search.name, search.key) == ("search-seed-0-nightly", challenger.provenance.search)
    assert told.tables["night"][0]["decision"] == "promoted"
    assert told.metrics["night/difference"] == pytest.approx(100 * found.difference.mean)

    questions = told.tables["night_questions"]
    assert len(questions) == found.questions
    assert {row["reads: champion"] for row in questions} == {"S+T+G+V+R"}, "the first champion reads everything"
    assert {row["reads: challenger"] for row in questions} != {"S+T+G+V+R"}
    policies = {row["role"]: row for row in told.tables["night_policies"]}
    assert policies["challenger"]["policy"] == made.challenger.name
    for role in ("champion", "challenger"):
        scores = [row[f"score: {role}"] for row in questions if row[f"score: {role}"] is not None]
        assert policies[role]["score"] == pytest.approx(sum(scores) / len(scores), abs=0.01)

    re_evaluate(evening, tracker, lambda: at_night(3))
    assert tracker.tests[1] == tracker.tests[0], "who took over is not set against itself"
    track(evening, tracker)
    assert tracker.tests[2] == (replace(search, params=tracker.tests[2][0].params), told), "told from what is kept"


def test_a_challenger_is_called_so_and_the_first_seed_stands_for_the_champion_no_more(evening: StageContext):
    rescore(evening, 0.1)
    tracker = TellingTracker()
    challenge(evening, tracker)
    optimize(evening, 0, tracker)
    assert [alias for alias, _ in tracker.aliases] == ["challenger", "seed-0"]

    shutil.rmtree(evening.layout.champion)
    rescore(evening, 0.1)
    optimize(evening, 0, tracker)
    assert [alias for alias, _ in tracker.aliases[2:]] == ["seed-0", "champion"]


def test_a_champion_that_got_worse_is_reported_with_what_changed(challenged: StageContext, tmp_path: Path):
    evening = later(copy_of(challenged, tmp_path), SEARCHED)
    re_evaluate(evening, NullTracker(), lambda: at_night(2))
    rescore(evening, -0.6)
    challenge(evening, NullTracker())
    summary = re_evaluate(evening, NullTracker(), lambda: at_night(3))
    found = last_night(evening)
    assert "than when it was crowned, on the same questions" in found.worse
    assert "significantly worse" in str(summary.facts["verdict"])
    page = (evening.layout.champion / PAGE).read_text()
    assert "mesa champion roll-back" in page
    assert "significantly worse" in page


def test_a_policy_put_in_place_by_hand_reigns_once(evening: StageContext):
    challenger = replace(evening.layout, nightly=True).policy(0) / FROZEN_FOLDER
    assert promote(evening, challenger, NullTracker(), now=lambda: at_night(2)).number == 1
    with pytest.raises(ArtifactError, match="no earlier champion"):
        roll_back(evening, NullTracker())


def test_a_history_that_was_edited_is_refused(evening: StageContext):
    history = evening.layout.champion / "history.jsonl"
    history.write_text(history.read_text().replace('"first"', '"promoted"', 1))
    with pytest.raises(ArtifactError, match=r"history\.jsonl"):
        re_evaluate(evening, NullTracker())


def test_no_episode_of_either_is_ever_compared_on(evening: StageContext):
    """Whatever the two were made on, and under whatever ids: the episodes compared on are in neither."""
    from mesa_pipeline.stages.contenders import Contender

    entries = read_manifest(evening.layout).episodes
    folder = Throne(evening.layout).frozen_folder(1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        made_on = {entry.id: entry.trajectory for entry in entries if rng.random() < 0.4}
        renamed = {f"other-{entry.id}": entry.trajectory for entry in entries if rng.random() < 0.2}
        contender = Contender.open(evening, folder, {**made_on, **renamed})
        unseen = contender.unseen(entries)
        assert not unseen & made_on.keys()
        assert {entry.trajectory for entry in entries if entry.id in unseen}.isdisjoint(renamed.values())
        expected = {e.id for e in entries if e.id not in made_on and e.trajectory not in renamed.values()}
        assert unseen == expected


@pytest.mark.parametrize("point", ["begin", "remember", "settle", "write_night_page"])
def test_a_night_killed_anywhere_ends_as_one_that_was_not(challenged: StageContext, tmp_path: Path, point: str):
    whole, evening = (later(copy_of(challenged, tmp_path / name), SEARCHED) for name in ("whole", "killed"))
    re_evaluate(whole, NullTracker(), lambda: at_night(2))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(evening.layout.workspace), point], check=False)
    assert killed.returncode == -signal.SIGKILL
    re_evaluate(evening, NullTracker(), lambda: at_night(2))
    assert content(evening) == content(whole)


KILLED = """
import os, signal, sys
from pathlib import Path
from mesa_pipeline.stages import champion
from mesa_pipeline.stages.reigns import Throne
from mesa_pipeline.tracking import NullTracker
from tests.stages.nights import at_night, context_of

def killed_after(function):
    def wrapped(*arguments):
        function(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    return wrapped

point = sys.argv[2]
owner = champion if hasattr(champion, point) else Throne
setattr(owner, point, killed_after(getattr(owner, point)))
champion.re_evaluate(context_of(Path(sys.argv[1]), "search.iterations=1"), NullTracker(), lambda: at_night(2))
"""
