import json
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.config import Settings
from mesa_pipeline.datasets import traces
from mesa_pipeline.datasets.rows import LoadedEpisodes
from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode

CHAT = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "I go."}]
STEPS = [{"action": "look", "observation": "A door."}, {"action": "open", "observation": "It opens."}]


def json_lines(*values: Any) -> str:
    return "\n".join(json.dumps(value) for value in values)


@pytest.fixture
def load_text(tmp_path: Path, settings: Settings) -> Any:
    def write_and_load(text: str, name: str = "run.log", skip_invalid: bool = False) -> LoadedEpisodes:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return traces.load(path, settings.datasets, skip_invalid)

    return write_and_load


def contents(episode: Episode) -> list[tuple[int, str, str]]:
    return [(step.index, step.action, step.observation) for step in episode.trajectory.steps]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CHAT),
        json.dumps(CHAT, indent=2),
        json.dumps({"messages": CHAT, "model": "x"}),
        json.dumps({"messages": CHAT}, indent=1),
        json_lines(*CHAT),
        "\n" + json_lines(*CHAT) + "\n\n",
    ],
)
def test_ways_to_write_one_conversation(load_text: Any, text: str) -> None:
    [episode] = load_text(text).episodes
    assert (episode.id, episode.dataset, episode.trajectory.task, episode.questions) == ("run", "traces", "Go.", ())
    assert contents(episode) == [(0, "I go.", "")]


@pytest.mark.parametrize("text", [json.dumps(STEPS), json_lines(*STEPS), json.dumps({"steps": STEPS})])
def test_ways_to_write_one_list_of_steps(load_text: Any, text: str) -> None:
    [episode] = load_text(text).episodes
    assert (episode.id, episode.trajectory.task, episode.trajectory.kind) == ("run", "", "agent")
    assert contents(episode) == [(0, "look", "A door."), (1, "open", "It opens.")]


@pytest.mark.parametrize(
    "text",
    [json_lines({"messages": CHAT}, {"steps": STEPS}, CHAT), json.dumps([{"messages": CHAT}, {"steps": STEPS}, CHAT])],
)
def test_a_file_of_several_episodes(load_text: Any, text: str) -> None:
    episodes = load_text(text).episodes
    assert [(episode.id, len(episode.trajectory.steps)) for episode in episodes] == [("run-1", 1), ("run-2", 2), ("run-3", 1)]


def test_an_episode_may_say_more_of_itself(load_text: Any) -> None:
    questions = [{"question": "What was seen?", "answer": "A door.", "type": "recall"}, {"question": "Why?"}]
    value = {"id": 12, "task": "Leave.", "domain": "home", "task_type": "doors", "steps": STEPS, "questions": questions}
    [episode] = load_text(json.dumps(value)).episodes
    assert (episode.id, episode.domain, episode.task_type, episode.trajectory.task) == ("12", "home", "doors", "Leave.")
    assert [(q.id, q.text, q.qa_type, q.answer) for q in episode.questions] == [
        ("12#0", "What was seen?", "recall", "A door."),
        ("12#1", "Why?", None, None),
    ]


def test_a_task_given_goes_before_the_first_message(load_text: Any) -> None:
    [episode] = load_text(json.dumps({"task": "Really.", "messages": CHAT})).episodes
    assert episode.trajectory.task == "Really."


def test_steps_may_carry_their_numbers(load_text: Any) -> None:
    steps = [{"index": 4, "action": "a"}, {"index": 9, "observation": ["x", "y"]}]
    assert contents(load_text(json.dumps(steps)).episodes[0]) == [(4, "a", ""), (9, "", "x\ny")]
    with pytest.raises(DataError, match="9 comes after 9"):
        load_text(json.dumps([{"index": 9, "action": "a"}, {"index": 9, "action": "b"}]))


def test_a_directory_holds_an_episode_in_each_file(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "b.jsonl").write_text(json_lines(*STEPS), encoding="utf-8")
    (tmp_path / "a.JSON").write_text(json.dumps(CHAT), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a log", encoding="utf-8")
    (tmp_path / "c.json").mkdir()
    loaded = traces.load(tmp_path, settings.datasets, False)
    assert [(episode.id, len(episode.trajectory.steps)) for episode in loaded.episodes] == [("a", 1), ("b", 2)]


def test_bad_files_of_a_directory_are_skipped_on_request(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "a.json").write_text("", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(json_lines(*STEPS) + '\n{"action": "cu', encoding="utf-8")
    (tmp_path / "c.jsonl").write_text(json_lines(*STEPS), encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.json is empty"):
        traces.load(tmp_path, settings.datasets, False)
    loaded = traces.load(tmp_path, settings.datasets, True)
    assert [episode.id for episode in loaded.episodes] == ["c"]
    assert "b.jsonl, line 3" in loaded.skipped[1]


def test_two_files_of_one_stem_are_refused(tmp_path: Path, settings: Settings) -> None:
    for name in ("a.json", "a.jsonl"):
        (tmp_path / name).write_text(json.dumps(CHAT), encoding="utf-8")
    with pytest.raises(DataError, match=r"'a' was already used at .*a\.json"):
        traces.load(tmp_path, settings.datasets, False)


def test_a_bad_line_among_episodes_costs_that_line_alone(load_text: Any) -> None:
    text = '{"messages": [\n' + json_lines({"messages": CHAT}, {"messages": [{"role": "robot"}]}, {"steps": STEPS})
    loaded = load_text(text, skip_invalid=True)
    assert [episode.id for episode in loaded.episodes] == ["run-2", "run-4"]
    assert ["line 1" in loaded.skipped[0], "line 3" in loaded.skipped[1]] == [True, True]


def test_a_bad_line_among_steps_costs_the_episode(load_text: Any) -> None:
    with pytest.raises(DataError, match=r"no episode .* line 2: not valid JSON"):
        load_text(json.dumps(STEPS[0]) + '\n{"action"\n' + json.dumps(STEPS[1]), skip_invalid=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("hello\nworld", "not valid JSON at column 1"),
        ('{\n "messages": [\n  {"role": "user"\n', "not valid JSON at line 4"),
        ("[]", "no episode in"),
        ("[[]]", "element 1: found a list of 0, which is neither messages nor steps"),
        ("5", "found the number 5"),
        ("[1, 2]", "element 1: found the number 1"),
        ('{"a": 1}', "found an object with the keys 'a'"),
        ('{"messages": 5}', "field messages: expected a list of objects, found the number 5"),
        ('{"steps": [1]}', r"field steps\[0\]: expected an object"),
        ('{"id": [], "steps": []}', "field id: expected a text or a whole number"),
        ('{"steps": [], "questions": {}}', "field questions: expected a list"),
        ('{"steps": [], "questions": [{}]}', r"field questions\[0\]\.question"),
        ('{"steps": [{"index": -1}]}', r"field steps\[0\]\.index: expected a whole number"),
        ('{"steps": [{"act": "go"}]}', r"field steps\[0\]: found an object with the keys 'act'; name its texts action"),
        (json_lines(CHAT[0], STEPS[0]), "line 2: expected a chat message like the first, found an object"),
        (json_lines(STEPS[0], 7), "line 2: expected a JSON object, found the number 7"),
    ],
)
def test_what_is_wrong_is_named(load_text: Any, text: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"run\.log.*{message}|{message} .*run\.log"):
        load_text(text)


def test_an_unknown_shape_is_answered_with_those_that_are_known(load_text: Any) -> None:
    with pytest.raises(DataError) as caught:
        load_text('{"events": []}')
    examples = [json.loads(line) for line in traces.ACCEPTED_SHAPES.splitlines() if line.startswith("    ")]
    assert len(examples) == 6
    for first, second in zip(examples[::2], examples[1::2], strict=True):
        assert json.dumps(first) in str(caught.value)
        assert load_text(json_lines(first, second)).episodes


def test_hostile_text_survives(load_text: Any) -> None:
    text = "\u0000 \ud83d {braces} \u202e " + "x" * 1_200_000
    [episode] = load_text(json.dumps([{"action": text, "observation": text}])).episodes
    assert contents(episode) == [(0, text, text)]


def test_a_missing_path_is_named(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(DataError, match=r"none does not exist.*--data"):
        traces.load(tmp_path / "none", settings.datasets, True)
    with pytest.raises(DataError, match=r"holds no file ending in \.json"):
        traces.load(tmp_path, settings.datasets, True)
    with pytest.raises(DataError, match="--data"):
        traces.load(None, settings.datasets, True)
