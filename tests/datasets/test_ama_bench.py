import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.config import AmaBenchSettings, Settings
from mesa_pipeline.datasets import ama_bench
from mesa_pipeline.datasets.rows import LoadedEpisodes
from mesa_pipeline.errors import DataError, MissingDependency
from mesa_pipeline.types import Episode


def make_row(**changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "episode_id": 7,
        "task": "Open the door.",
        "task_type": "alfworld",
        "domain": "EMBODIED_AI",
        "trajectory": [
            {"turn_idx": 0, "action": "look", "observation": "A door."},
            {"turn_idx": 1, "action": "open door", "observation": "It opens."},
        ],
        "qa_pairs": [{"question": "What is at step 0?", "answer": "A door.", "type": "A"}],
    }
    return row | changes


def with_turn(**turn: Any) -> dict[str, Any]:
    return make_row(trajectory=[{"turn_idx": 0} | turn])


def with_pair(**pair: Any) -> dict[str, Any]:
    return make_row(qa_pairs=[{"question": "Why?", "answer": "So.", "type": "B"} | pair])


@pytest.fixture
def load_rows(tmp_path: Path, settings: Settings) -> Any:
    def write_and_load(*rows: dict[str, Any] | str, skip_invalid: bool = False) -> LoadedEpisodes:
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
        return ama_bench.load(path, settings.datasets, skip_invalid)

    return write_and_load


def test_a_row_becomes_an_episode(load_rows: Any) -> None:
    [episode] = load_rows(make_row()).episodes
    assert isinstance(episode, Episode)
    assert (episode.id, episode.dataset, episode.domain, episode.task_type) == ("7", "ama_bench", "EMBODIED_AI", "alfworld")
    assert episode.trajectory.task == "Open the door."
    assert episode.trajectory.kind == "agent"
    assert [(s.index, s.action, s.observation) for s in episode.trajectory.steps] == [
        (0, "look", "A door."),
        (1, "open door", "It opens."),
    ]
    [question] = episode.questions
    assert (question.id, question.qa_type, question.answer) == ("7#0", "recall", "A door.")


def test_unknown_keys_are_ignored(load_rows: Any) -> None:
    row = make_row(success=True, num_turns=99, source="x", game_file=[1])
    row["trajectory"][0] |= {"role": "assistant", "reward": 0.5, "done": False}
    row["qa_pairs"][0] |= {"question_uuid": "u", "sub_type": "", "hops": 2}
    assert load_rows(row) == load_rows(make_row())


def test_ids_may_be_text_and_are_never_paths(load_rows: Any) -> None:
    loaded = load_rows(make_row(episode_id="sf002"), make_row(episode_id="../../x"))
    assert [episode.id for episode in loaded.episodes] == ["sf002", "../../x"]


@pytest.mark.parametrize(
    ("turn", "action", "observation"),
    [
        ({"action": None, "observation": None}, "", ""),
        ({}, "", ""),
        ({"action": "—", "observation": ""}, "", ""),
        ({"action": "—", "action_name": "click"}, "click", ""),
        ({"observation": None, "reasoning": "I think."}, "", "I think."),
        ({"action": "go", "action_name": "click", "observation": "x", "reasoning": "y"}, "go", "x"),
        ({"action": ["a", "b"]}, "a\nb", ""),
        ({"action": {"name": "run", "args": [1]}}, '{"name": "run", "args": [1]}', ""),
        ({"observation": [{"x": 1}]}, "", '[{"x": 1}]'),
        ({"observation": "NUL \u0000 and \ud83d and \ue608"}, "", "NUL \u0000 and \ud83d and \ue608"),
        ({"observation": "{'board': [[2]]}\nStep 9: not a header"}, "", "{'board': [[2]]}\nStep 9: not a header"),
    ],
)
def test_ways_to_write_a_turn(load_rows: Any, turn: dict[str, Any], action: str, observation: str) -> None:
    [step] = load_rows(with_turn(**turn)).episodes[0].trajectory.steps
    assert (step.action, step.observation) == (action, observation)


@pytest.mark.parametrize(
    ("given", "qa_type"),
    [
        ("A", "recall"),
        ("B", "causal"),
        ("C", "state-updating"),
        ("D", "abstraction"),
        ("d", "abstraction"),
        ("E", "E"),
        ("mcq", "mcq"),
        (None, None),
        ("", None),
    ],
)
def test_type_letters_have_names_and_others_are_kept(load_rows: Any, given: str | None, qa_type: str | None) -> None:
    assert load_rows(with_pair(type=given)).episodes[0].questions[0].qa_type == qa_type


def test_multiple_choice_rows_are_tolerated(load_rows: Any) -> None:
    [question] = load_rows(with_pair(question="Which? A) x B) y", answer=["A", "B"])).episodes[0].questions
    assert (question.text, question.answer) == ("Which? A) x B) y", "A, B")


def test_questions_are_numbered_by_place_because_texts_repeat(load_rows: Any) -> None:
    pair = {"question": "Same?", "answer": "Yes", "type": "A"}
    [episode] = load_rows(make_row(qa_pairs=[pair, pair])).episodes
    assert [question.id for question in episode.questions] == ["7#0", "7#1"]


def test_an_episode_may_have_no_steps_and_no_questions(load_rows: Any) -> None:
    [episode] = load_rows(make_row(trajectory=[], qa_pairs=[], task=None)).episodes
    assert (episode.trajectory.steps, episode.trajectory.task, episode.questions) == ((), "", ())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (make_row(episode_id=None), "field episode_id: expected a text or a whole number, found nothing"),
        (make_row(episode_id=True), "field episode_id"),
        (make_row(domain=None), "field domain: .* found nothing"),
        (make_row(task_type=["x"]), "field task_type: .* found a list of 1"),
        (make_row(task=5), "field task: expected text or null, found the number 5"),
        (make_row(trajectory=None), "field trajectory: expected a list of objects, found nothing"),
        (make_row(trajectory={"0": {}}), "field trajectory: .* found an object"),
        (make_row(trajectory=["look"]), r"field trajectory\[0\]: expected an object, found the text 'look'"),
        (make_row(trajectory=[{"action": "look"}]), r"field trajectory\[0\]\.turn_idx: .* found nothing"),
        (make_row(trajectory=[{"turn_idx": 1}, {"turn_idx": 0}]), r"trajectory\[1\]\.turn_idx: 0 comes after 1"),
        (make_row(trajectory=[{"turn_idx": 0}, {"turn_idx": 0}]), r"trajectory\[1\]\.turn_idx: 0 comes after 0"),
        (make_row(qa_pairs=None), "field qa_pairs: .* found nothing"),
        (with_pair(question=" "), r"field qa_pairs\[0\]\.question"),
        (with_pair(answer=None), r"field qa_pairs\[0\]\.answer: expected a reference answer"),
        (with_pair(type=3), r"field qa_pairs\[0\]\.type"),
        ("[1, 2]", "expected a JSON object, found a list of 2"),
        ('{"episode_id": 7, "task', "not valid JSON"),
        ('{"episode_id": "\x00"}', "not valid JSON"),
        ("null", "expected a JSON object"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_line(load_rows: Any, row: dict[str, Any] | str, message: str) -> None:
    good = make_row(episode_id="good")
    with pytest.raises(DataError, match=rf"rows\.jsonl, line 2.*{message}"):
        load_rows(good, row)
    loaded = load_rows(good, row, skip_invalid=True)
    assert [episode.id for episode in loaded.episodes] == ["good"]
    assert len(loaded.skipped) == 1


def test_a_second_row_with_the_same_id_is_refused(load_rows: Any) -> None:
    with pytest.raises(DataError, match=r"line 2: episode id '7' was already used at .*line 1"):
        load_rows(make_row(), make_row(episode_id="7"))


@pytest.fixture
def hub(tmp_path: Path, settings: Settings) -> AmaBenchSettings:
    path = tmp_path / "hub.jsonl"
    path.write_text(json.dumps(make_row()), encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return settings.datasets.ama_bench.model_copy(update={"file": str(path), "sha256": digest})


def test_a_downloaded_file_with_the_pinned_hash_is_used(hub: AmaBenchSettings) -> None:
    assert ama_bench.fetch(hub, lambda wanted: Path(wanted.file)) == Path(hub.file)


def test_a_downloaded_file_with_another_hash_is_refused(hub: AmaBenchSettings) -> None:
    other = hub.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(DataError, match=rf"SHA-256 is {hub.sha256}, expected 0{{64}}; delete"):
        ama_bench.fetch(other, lambda wanted: Path(wanted.file))


def test_what_the_hub_client_cannot_do_is_told_with_the_way_out(settings: Settings) -> None:
    unusable = settings.datasets.ama_bench.model_copy(update={"repo": "not a repository name"})
    with pytest.raises(MissingDependency, match=r"not a repository name.*--data"):
        ama_bench.download_from_hub(unusable)


class TestDevelopmentData:
    @pytest.fixture(scope="class")
    def episodes(self, dev_data: Path, settings: Settings) -> tuple[Episode, ...]:
        loaded = ama_bench.load(dev_data / "ama_bench" / "open_end_qa_set.jsonl", settings.datasets, False)
        assert not loaded.skipped
        return loaded.episodes

    def test_counts(self, episodes: tuple[Episode, ...]) -> None:
        assert len(episodes) == 86
        assert sum(len(episode.questions) for episode in episodes) == 1032
        assert sum(len(episode.trajectory.steps) for episode in episodes) == 6233
        assert len({episode.task_type for episode in episodes}) == 12
        assert len({episode.domain for episode in episodes}) == 6

    def test_question_types(self, episodes: tuple[Episode, ...]) -> None:
        counts = Counter(question.qa_type for episode in episodes for question in episode.questions)
        assert counts == {"recall": 351, "causal": 245, "state-updating": 266, "abstraction": 170}

    def test_question_ids_are_unique_although_texts_are_not(self, episodes: tuple[Episode, ...]) -> None:
        questions = [question for episode in episodes for question in episode.questions]
        assert len({question.id for question in questions}) == len(questions)
        assert len({question.text for question in questions}) < len(questions)

    def test_steps_count_from_zero_and_nobody_prints_none(self, episodes: tuple[Episode, ...]) -> None:
        for episode in episodes:
            assert [step.index for step in episode.trajectory.steps] == list(range(len(episode.trajectory.steps)))
            assert not any(step.action in {"None", "—"} for step in episode.trajectory.steps)
        spider = [episode for episode in episodes if episode.task_type == "spider2"]
        assert all(step.is_empty for episode in spider for step in episode.trajectory.steps[:2])
