"""LoCoMo conversations: every dialogue turn is a step with a fixed action (paper, Section 4).

Only what the two speakers saw is read: session time, speaker, text and image caption. The file's generated summaries and
observations, its event lists and its image search phrases are annotations, and would leak answers into a memory.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mesa_pipeline.config import DatasetsSettings
from mesa_pipeline.datasets.rows import Fields, LoadedEpisodes, Row, collect_episodes, parse_row, read_bytes
from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode, Question, Step, Trajectory

DATASET = "locomo"
DOMAIN = "dialogue"
TASK_TYPE = "conversation"
DIALOGUE_ACTION = "say"
MULTI_HOP = "multi-hop"
OPEN_DOMAIN = "open-domain"
ADVERSARIAL = "adversarial"
QA_TYPES = {4: "single-hop", 1: MULTI_HOP, 2: "temporal", 3: OPEN_DOMAIN, 5: ADVERSARIAL}
NOT_MENTIONED = "Not mentioned in the conversation"

_SESSION = re.compile(r"session_(\d{1,6})", re.ASCII)
_TURN_ID = re.compile(r"D:?(\d{1,6}):(\d{1,6})", re.ASCII)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnId:
    """The annotators' name of a turn, ``D<session>:<turn>`` in the file."""

    session: int
    turn: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the dialogue."""

    id: TurnId
    speaker: str
    time: str
    text: str
    caption: str

    def to_step(self, index: int) -> Step:
        """The turn as a step: ``[time] Speaker: text [shares an image: caption]``."""
        parts = [f"[{self.time}]" if self.time else "", f"{self.speaker}:", self.text]
        parts.append(f"[shares an image: {self.caption}]" if self.caption else "")
        return Step(index, DIALOGUE_ACTION, " ".join(part for part in parts if part))


def load(path: Path | None, settings: DatasetsSettings, skip_invalid: bool) -> LoadedEpisodes:
    """Load conversations in the layout of ``locomo10.json``.

    Args:
        path: The file.
        settings: Says whether adversarial questions (category 5) are kept.
        skip_invalid: Leave bad conversations out and list them, instead of stopping at the first.

    Raises:
        DataError: The file or a conversation in it is not what it should be; names place, field, finding and remedy.
    """
    if path is None:
        raise DataError("dataset 'locomo' is read from a file; pass locomo10.json with --data")
    samples = parse_row(str(path), read_bytes(path)).checked_value()
    if not isinstance(samples, list):
        raise DataError(f"{path}: expected a list of conversations, as in locomo10.json; check the path given with --data")
    rows = [Row(f"{path}, conversation {number}", sample) for number, sample in enumerate(samples, start=1)]
    include_adversarial = settings.locomo.include_adversarial
    return collect_episodes(path, rows, lambda row: _read_episode(row, include_adversarial), skip_invalid=skip_invalid)


def _read_episode(row: Row, include_adversarial: bool) -> Episode:
    sample = row.fields()
    episode_id = sample.identifier("sample_id")
    turns = _read_turns(sample.object("conversation", "it holds the sessions"))
    steps = tuple(turn.to_step(index) for index, turn in enumerate(turns))
    index_of = {turn.id: index for index, turn in reversed(list(enumerate(turns)))}
    questions = []
    unmatched: list[str] = []
    for number, pair in enumerate(sample.objects("qa", "list the questions as objects, or write []")):
        evidence = _find_evidence(pair, index_of)
        question = _read_question(pair, f"{episode_id}#{number}", evidence.steps)
        if include_adversarial or question.qa_type != ADVERSARIAL:
            questions.append(question)
            unmatched.extend(f"{question.id} {piece!r}" for piece in evidence.unmatched)
    if unmatched:
        _logger.warning("%s: evidence marks that name no turn are left out: %s", row.where, ", ".join(unmatched))
    return Episode(
        id=episode_id,
        dataset=DATASET,
        domain=DOMAIN,
        task_type=TASK_TYPE,
        trajectory=Trajectory(episode_id, _describe_task(turns), steps, "dialogue"),
        questions=tuple(questions),
    )


def _read_turns(conversation: Fields) -> list[Turn]:
    sessions = sorted((int(match[1]), key) for key in conversation.values if (match := _SESSION.fullmatch(key)))
    turns = []
    for number, key in sessions:
        if conversation.values[key] is None:
            continue
        time = conversation.optional_text(f"{key}_date_time")
        for position, turn in enumerate(conversation.objects(key, "a session is a list of turns"), start=1):
            turns.append(_read_turn(turn, TurnId(number, position), time))
    return turns


def _read_turn(turn: Fields, default_id: TurnId, time: str) -> Turn:
    match = _TURN_ID.fullmatch(turn.optional_text("dia_id").strip())
    return Turn(
        id=TurnId(int(match[1]), int(match[2])) if match else default_id,
        speaker=turn.text("speaker", "name who speaks"),
        time=time,
        text=turn.optional_text("text"),
        caption=turn.optional_text("blip_caption"),
    )


def _read_question(pair: Fields, question_id: str, annotated_steps: tuple[int, ...]) -> Question:
    category = pair.whole_number("category", "categories are 1 to 5")
    if category not in QA_TYPES:
        raise pair.error("category", "a category from 1 to 5", "correct it, or remove the question")
    # Nearly all adversarial items lack an answer, and their "adversarial_answer" is the wrong one.
    if QA_TYPES[category] == ADVERSARIAL and pair.values.get("answer") is None:
        answer = NOT_MENTIONED
    else:
        answer = pair.reference("answer", "give the reference answer: without one the question cannot be scored")
    text = pair.text("question", "write the question's text, or remove it")
    return Question(question_id, text, QA_TYPES[category], answer, annotated_steps)


@dataclass(frozen=True, slots=True)
class _FoundEvidence:
    steps: tuple[int, ...]
    unmatched: tuple[str, ...]


def _find_evidence(pair: Fields, index_of: Mapping[TurnId, int]) -> _FoundEvidence:
    """Map evidence marks to step indices; one mark may hold several ids, zero-padded or with a stray colon."""
    marks = pair.values.get("evidence") or []
    if not isinstance(marks, list) or not all(isinstance(mark, str) for mark in marks):
        raise pair.error("evidence", "a list of texts", "write turn ids such as D1:3, or []")
    steps: set[int] = set()
    unmatched: list[str] = []
    for mark in marks:
        ids = [TurnId(int(session), int(turn)) for session, turn in _TURN_ID.findall(mark)]
        steps.update(index_of[turn_id] for turn_id in ids if turn_id in index_of)
        if not ids or any(turn_id not in index_of for turn_id in ids):
            unmatched.append(mark)
    return _FoundEvidence(tuple(sorted(steps)), tuple(unmatched))


def _describe_task(turns: Sequence[Turn]) -> str:
    speakers = " and ".join(dict.fromkeys(turn.speaker for turn in turns))
    return f"A conversation between {speakers} over several sessions." if speakers else "A conversation."
