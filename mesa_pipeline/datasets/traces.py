"""A user's own logs, in whichever of a few common shapes; the shape is told by the content, not by the file's name.

A file is one JSON value or JSON lines. Chat messages, or ``{action, observation}`` objects, are one episode together, whether
they stand in brackets or one a line; otherwise every line, or element of the list, is an episode of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from mesa_pipeline.config import DatasetsSettings
from mesa_pipeline.datasets.chat import ChatTrace, read_chat
from mesa_pipeline.datasets.rows import (
    Fields,
    LoadedEpisodes,
    Row,
    check_increasing,
    collect_episodes,
    describe,
    parse_row,
    read_bytes,
    split_lines,
)
from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode, Question, Step, Trajectory

DATASET = "traces"
DEFAULT_LABEL = "traces"
SUFFIXES = (".json", ".jsonl", ".ndjson")
ACCEPTED_SHAPES = """accepted, as one JSON value or as JSON lines, are
  the chat messages of one episode:
    {"role": "user", "content": "Fix the failing test"}
    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "function": {"name": "run", "arguments": "{}"}}]}
  the steps of one episode:
    {"action": "open door", "observation": "It is locked."}
    {"action": "use key", "observation": "The door opens."}
  whole episodes with messages or steps; id, task and questions are optional:
    {"id": "run-1", "messages": [{"role": "user", "content": "Fix the failing test"}]}
    {"id": "run-2", "steps": [{"action": "go", "observation": "Out."}], "questions": [{"question": "Where?"}]}"""


class Shape(Enum):
    """What a JSON value in a log is."""

    MESSAGE = "a chat message"
    STEP = "a step"
    CONVERSATION = "an episode of chat messages"
    EPISODE = "an episode of steps"


@dataclass(frozen=True, slots=True)
class Source:
    """Where one episode comes from: its messages or steps one by one, or a single value that holds it whole."""

    where: str
    default_id: str
    parts: tuple[Row, ...]


def load(path: Path | None, settings: DatasetsSettings, skip_invalid: bool) -> LoadedEpisodes:
    """Load logs from a file, or from the JSON files of a directory in the order of their names.

    Args:
        path: File or directory.
        settings: Not read; every loader is called alike.
        skip_invalid: Leave bad episodes out and list them, instead of stopping at the first.

    Raises:
        DataError: Something is not of an accepted shape; names place, field, finding and remedy.
    """
    if path is None:
        raise DataError(f"dataset 'traces' is read from your files: pass one, or a directory, with --data; {ACCEPTED_SHAPES}")
    if not path.exists():
        raise DataError(f"{path} does not exist; check the path given with --data")
    files = _list_files(path) if path.is_dir() else [path]
    sources = (source for file in files for source in _find_sources(file))
    return collect_episodes(path, sources, _read_episode, skip_invalid=skip_invalid)


def _list_files(directory: Path) -> list[Path]:
    files = sorted(file for file in directory.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    if not files:
        raise DataError(f"{directory} holds no file ending in {', '.join(SUFFIXES)}; check the path given with --data")
    return files


def _find_sources(file: Path) -> Iterator[Source]:
    parts = _read_parts(file)
    shapes = (_recognise(part.value) for part in parts if part.problem is None)
    if next(shapes, None) in (Shape.MESSAGE, Shape.STEP):
        yield Source(str(file), file.stem, tuple(parts))
        return
    for number, part in enumerate(parts, start=1):
        yield Source(part.where, file.stem if len(parts) == 1 else f"{file.stem}-{number}", (part,))


def _read_parts(file: Path) -> list[Row]:
    """Elements of a JSON list, lines of JSON lines, or the one value; trouble with the file becomes a row's problem."""
    try:
        content = read_bytes(file)
    except DataError as error:
        return [Row(str(file), problem=str(error))]
    whole = parse_row(str(file), content)
    if whole.problem is None and isinstance(whole.value, list):
        return [Row(f"{file}, element {number}", item) for number, item in enumerate(whole.value, start=1)]
    if whole.problem is None:
        return [whole]
    lines = list(split_lines(file, content))
    return lines if any(line.problem is None for line in lines) else [whole]


def _recognise(value: Any) -> Shape | None:
    if not isinstance(value, list) or not value:
        return _recognise_object(value)
    first = _recognise_object(value[0])
    if first is Shape.MESSAGE:
        return Shape.CONVERSATION
    return Shape.EPISODE if first is Shape.STEP else None


def _recognise_object(value: Any) -> Shape | None:
    if not isinstance(value, dict):
        return None
    if "messages" in value:
        return Shape.CONVERSATION
    if "steps" in value:
        return Shape.EPISODE
    if "role" in value:
        return Shape.MESSAGE
    return Shape.STEP if "action" in value or "observation" in value else None


def _read_episode(source: Source) -> Episode:
    opened = _open(source)
    header = opened.header
    episode_id = source.default_id if header.values.get("id") is None else header.identifier("id")
    trace = read_chat(opened.entries) if opened.is_chat else ChatTrace("", _read_steps(opened.entries, source.where))
    return Episode(
        id=episode_id,
        dataset=DATASET,
        domain=header.optional_text("domain", DEFAULT_LABEL),
        task_type=header.optional_text("task_type", DEFAULT_LABEL),
        trajectory=Trajectory(episode_id, header.optional_text("task") or trace.task, trace.steps),
        questions=_read_questions(header, episode_id),
    )


@dataclass(frozen=True, slots=True)
class _OpenedSource:
    header: Fields
    entries: tuple[Fields, ...]
    is_chat: bool


def _open(source: Source) -> _OpenedSource:
    first = source.parts[0]
    value = first.checked_value()
    shape = _recognise(value)
    if shape is None:
        raise DataError(f"{first.where}: found {describe(value)}, which is neither messages nor steps; {ACCEPTED_SHAPES}")
    if shape in (Shape.MESSAGE, Shape.STEP):
        return _OpenedSource(Fields({}, source.where), _read_alike(source.parts, shape), shape is Shape.MESSAGE)
    key = "messages" if shape is Shape.CONVERSATION else "steps"
    header = Fields(value if isinstance(value, dict) else {key: value}, first.where)
    return _OpenedSource(header, header.objects(key, f"write the {key} as a list of objects"), key == "messages")


def _read_alike(parts: Sequence[Row], shape: Shape) -> tuple[Fields, ...]:
    entries = tuple(part.fields() for part in parts)
    for entry in entries:
        if _recognise(entry.values) is not shape:
            raise DataError(f"{entry.where}: expected {shape.value} like the first, found {describe(entry.values)}; correct it")
    return entries


def _read_steps(entries: Sequence[Fields], where: str) -> tuple[Step, ...]:
    steps = (_read_step(entry, position) for position, entry in enumerate(entries))
    return check_increasing(steps, where, "index of step {position}")


def _read_step(entry: Fields, position: int) -> Step:
    numbered = entry.values.get("index") is not None
    index = entry.whole_number("index", "number the steps from 0, or leave index out") if numbered else position
    if not {"action", "observation"} & entry.values.keys():
        found = describe(entry.values)
        raise DataError(f"{entry.where}, field {entry.path.rstrip('.')}: found {found}; name its texts action and observation")
    return Step(index, entry.any_text("action"), entry.any_text("observation"))


def _read_questions(header: Fields, episode_id: str) -> tuple[Question, ...]:
    if header.values.get("questions") is None:
        return ()
    pairs = header.objects("questions", "list them as objects with question and, optionally, answer and type")
    return tuple(_read_question(pair, f"{episode_id}#{number}") for number, pair in enumerate(pairs))


def _read_question(pair: Fields, question_id: str) -> Question:
    unanswered = pair.values.get("answer") is None
    return Question(
        id=question_id,
        text=pair.text("question", "write the question's text, or remove it"),
        qa_type=pair.optional_text("type") or None,
        answer=None if unanswered else pair.reference("answer", "give the reference answer, or leave it out"),
    )
