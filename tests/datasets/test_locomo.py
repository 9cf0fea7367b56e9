import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mesa_pipeline.config import DatasetsSettings, Settings
from mesa_pipeline.datasets import locomo
from mesa_pipeline.datasets.rows import LoadedEpisodes
from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode

PAIR = {"question": "Where?", "answer": "Rome", "evidence": ["D1:1"], "category": 4}


def make_turn(turn_id: str, speaker: str = "Ann", text: str = "Hi.", **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": turn_id, "text": text} | more


def make_sample(*pairs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_10_date_time": "9:00 am on 2 June, 2023",
        "session_10": [make_turn("D10:1", text="Ten.")],
        "session_2_date_time": "8:00 am on 1 June, 2023",
        "session_2": [make_turn("D2:1", "Bob", "Two.")],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [make_turn("D1:1"), make_turn("D1:2", "Bob", "Hello.")],
        "session_11_date_time": "9:00 am on 3 June, 2023",
    }
    sample = {"sample_id": "conv-1", "conversation": conversation, "qa": list(pairs)}
    return sample | changes


@pytest.fixture
def load_samples(tmp_path: Path, settings: Settings) -> Any:
    def write_and_load(*samples: Any, adversarial: bool = False, skip_invalid: bool = False) -> LoadedEpisodes:
        path = tmp_path / "locomo.json"
        path.write_text(json.dumps(samples), encoding="utf-8")
        chosen = settings.datasets.locomo.model_copy(update={"include_adversarial": adversarial})
        return locomo.load(path, settings.datasets.model_copy(update={"locomo": chosen}), skip_invalid)

    return write_and_load


def test_turns_are_steps_in_the_numeric_order_of_sessions(load_samples: Any) -> None:
    [episode] = load_samples(make_sample()).episodes
    assert (episode.id, episode.dataset, episode.domain, episode.task_type) == ("conv-1", "locomo", "dialogue", "conversation")
    assert episode.trajectory.kind == "dialogue"
    assert episode.trajectory.task == "A conversation between Ann and Bob over several sessions."
    assert [(step.index, step.action, step.observation) for step in episode.trajectory.steps] == [
        (0, "say", "[1:56 pm on 8 May, 2023] Ann: Hi."),
        (1, "say", "[1:56 pm on 8 May, 2023] Bob: Hello."),
        (2, "say", "[8:00 am on 1 June, 2023] Bob: Two."),
        (3, "say", "[9:00 am on 2 June, 2023] Ann: Ten."),
    ]


def test_a_caption_is_read_and_annotations_are_not(load_samples: Any) -> None:
    sample = make_sample(
        event_summary={"events_session_1": {"Ann": ["SECRET"]}},
        observation={"session_1_observation": {"Ann": [["SECRET", "D1:1"]]}},
        session_summary={"session_1_summary": "SECRET"},
    )
    turn = make_turn("D1:1", img_url=["http://SECRET"], blip_caption="a dog", query="SECRET")
    sample["conversation"] = {"session_1": [turn], "session_1_date_time": "noon"}
    [step] = load_samples(sample).episodes[0].trajectory.steps
    assert step.observation == "[noon] Ann: Hi. [shares an image: a dog]"


@pytest.mark.parametrize(
    ("conversation", "observations"),
    [
        ({}, []),
        ({"session_1": []}, []),
        ({"session_1": None, "session_1_date_time": "noon"}, []),
        ({"session_1": [{"speaker": "Ann", "text": None}]}, ["Ann:"]),
        ({"session_1": [make_turn("?", text="caf\u00e9\u200b \u0000\ud83d")]}, ["Ann: caf\u00e9\u200b \u0000\ud83d"]),
    ],
)
def test_odd_conversations(load_samples: Any, conversation: dict[str, Any], observations: list[str]) -> None:
    [episode] = load_samples(make_sample(conversation=conversation)).episodes
    assert [step.observation for step in episode.trajectory.steps] == observations


@pytest.mark.parametrize(
    ("category", "qa_type"), [(4, "single-hop"), (1, "multi-hop"), (2, "temporal"), (3, "open-domain"), (5, "adversarial")]
)
def test_category_names(load_samples: Any, category: int, qa_type: str) -> None:
    [question] = load_samples(make_sample(PAIR | {"category": category}), adversarial=True).episodes[0].questions
    assert question.qa_type == qa_type


def test_adversarial_questions_are_left_out_without_renumbering(load_samples: Any) -> None:
    trap = {"question": "Did Ann?", "adversarial_answer": "WRONG", "evidence": ["D1:1"], "category": 5}
    sample = make_sample(PAIR, trap, PAIR)
    assert [question.id for question in load_samples(sample).episodes[0].questions] == ["conv-1#0", "conv-1#2"]
    questions = load_samples(sample, adversarial=True).episodes[0].questions
    assert [question.id for question in questions] == ["conv-1#0", "conv-1#1", "conv-1#2"]
    assert questions[1].answer == "Not mentioned in the conversation"


def test_numbers_as_answers_become_text(load_samples: Any) -> None:
    [question] = load_samples(make_sample(PAIR | {"answer": 2022})).episodes[0].questions
    assert question.answer == "2022"


@pytest.mark.parametrize(
    ("evidence", "steps"),
    [
        (["D1:2"], (1,)),
        (["D1:2; D10:1"], (1, 3)),
        (["D10:1 D1:1 D2:1"], (0, 2, 3)),
        (["D1:02", "D01:2"], (1,)),
        (["D:1:2"], (1,)),
        (["D"], ()),
        (["D9:9"], ()),
        (["D1:1", "D1:1"], (0,)),
        ([], ()),
        (None, ()),
        (["D" + "9" * 10_000 + ":1"], ()),
    ],
)
def test_evidence_marks_are_mapped_to_steps(load_samples: Any, evidence: list[str] | None, steps: tuple[int, ...]) -> None:
    [question] = load_samples(make_sample(PAIR | {"evidence": evidence})).episodes[0].questions
    assert question.annotated_steps == steps


def test_marks_that_name_no_turn_are_reported(load_samples: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_samples(make_sample(PAIR, PAIR | {"evidence": ["D", "D1:1"]}, PAIR | {"evidence": ["D7:7"]}))
    [record] = caplog.records
    assert "conv-1#1 'D', conv-1#2 'D7:7'" in record.getMessage()


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (make_sample(sample_id=None), "field sample_id"),
        (make_sample(conversation=[]), "field conversation: expected an object, found a list of 0"),
        (make_sample(conversation={"session_3": "x"}), r"field conversation\.session_3: expected a list of objects"),
        (make_sample(conversation={"session_3": [{"text": "x"}]}), r"conversation\.session_3\[0\]\.speaker: .* found nothing"),
        (make_sample(qa=None), "field qa: expected a list of objects, found nothing"),
        (make_sample({"question": "?", "category": 4}), r"field qa\[0\]\.answer: expected a reference answer"),
        (make_sample(PAIR | {"question": None}), r"field qa\[0\]\.question"),
        (make_sample(PAIR | {"category": 6}), r"field qa\[0\]\.category: expected a category from 1 to 5, found the number 6"),
        (make_sample(PAIR | {"category": "4"}), r"field qa\[0\]\.category"),
        (make_sample(PAIR | {"evidence": "D1:1"}), r"field qa\[0\]\.evidence: expected a list of texts"),
        ("conv-1", "expected a JSON object"),
    ],
)
def test_a_wrong_field_is_named_with_its_conversation(load_samples: Any, sample: Any, message: str) -> None:
    good = make_sample(PAIR, sample_id="good")
    with pytest.raises(DataError, match=rf"locomo\.json, conversation 2.*{message}"):
        load_samples(good, sample)
    loaded = load_samples(good, sample, skip_invalid=True)
    assert [episode.id for episode in loaded.episodes] == ["good"]
    assert len(loaded.skipped) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ('[{"sample_id"', "not valid JSON"),
        ('{"a": 1}', "expected a list of conversations"),
        ("[]", "no episode"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, settings: Settings, content: str, message: str) -> None:
    path = tmp_path / "f.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        locomo.load(path, settings.datasets, True)


def test_it_needs_a_path(settings: Settings) -> None:
    with pytest.raises(DataError, match="--data"):
        locomo.load(None, settings.datasets, False)


class TestDevelopmentData:
    @pytest.fixture(scope="class")
    def datasets(self, settings: Settings) -> DatasetsSettings:
        return settings.datasets

    @pytest.fixture(scope="class")
    def episodes(self, dev_data: Path, datasets: DatasetsSettings) -> tuple[Episode, ...]:
        return locomo.load(dev_data / "locomo" / "locomo5.json", datasets, False).episodes

    def test_counts(self, episodes: tuple[Episode, ...]) -> None:
        assert [episode.id for episode in episodes] == ["conv-26", "conv-30", "conv-42", "conv-48", "conv-49"]
        assert [len(episode.trajectory.steps) for episode in episodes] == [419, 369, 629, 681, 509]
        counts = Counter(question.qa_type for episode in episodes for question in episode.questions)
        assert counts == {"single-hop": 416, "multi-hop": 138, "temporal": 178, "open-domain": 47}
        assert counts.total() == 779

    def test_adversarial_questions_on_request(self, dev_data: Path, datasets: DatasetsSettings) -> None:
        chosen = datasets.model_copy(update={"locomo": datasets.locomo.model_copy(update={"include_adversarial": True})})
        episodes = locomo.load(dev_data / "locomo" / "locomo5.json", chosen, False).episodes
        questions = [question for episode in episodes for question in episode.questions]
        assert len(questions) == 999
        assert sum(question.qa_type == "adversarial" for question in questions) == 220
        assert all(question.answer for question in questions)

    def test_nearly_all_questions_have_annotated_steps(self, episodes: tuple[Episode, ...]) -> None:
        without = [question.id for episode in episodes for question in episode.questions if not question.annotated_steps]
        assert without == ["conv-26#30", "conv-26#46"]
        for episode in episodes:
            indices = range(len(episode.trajectory.steps))
            assert all(step in indices for question in episode.questions for step in question.annotated_steps)
