"""What the loaders share: the result record, and readers whose errors name file, row, field, what was found and the remedy.

A file is read into rows, a row into fields, fields into records. A row that cannot be read carries its problem along instead of
raising it, so that ``collect_episodes`` alone decides between stopping the load and leaving the row out.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mesa_pipeline.errors import DataError
from mesa_pipeline.types import Episode, Step

ABSENT_MARKS = {"", "\u2014"}
SHOWN_CHARS = 60
SHOWN_ROWS = 10
UTF8_BOM = b"\xef\xbb\xbf"
_logger = logging.getLogger(__name__)


class Placed(Protocol):
    """Something that stands at a place in a file."""

    @property
    def where(self) -> str:
        """The place, as shown to a person."""
        ...


P = TypeVar("P", bound=Placed)


@dataclass(frozen=True)
class LoadedEpisodes:
    """Episodes in file order, and one line for each row that was left out under ``skip_invalid``."""

    episodes: tuple[Episode, ...]
    skipped: tuple[str, ...] = ()


def absent_to_empty(text: str | None) -> str:
    """``None``, an empty string and an em dash standing alone all mean "absent"."""
    return "" if text is None or text.strip() in ABSENT_MARKS else text


def to_text(value: Any) -> str:
    """Any JSON value as text: absent ones empty, a list of texts as its lines, other structures as JSON."""
    if value is None or isinstance(value, str):
        return absent_to_empty(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return absent_to_empty("\n".join(value))
    return json.dumps(value, ensure_ascii=False)


def describe(value: Any) -> str:
    """A found value for an error message: short, and printable whatever it holds."""
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with the keys {shorten(', '.join(sorted(value)))}" if value else "an empty object"
    kind = {str: "text", bool: "boolean"}.get(type(value), "number")
    return f"the {kind} {shorten(value)}"


def shorten(value: Any) -> str:
    """``repr`` of a value, at most about ``SHOWN_CHARS`` characters of it; escapes lone surrogates and direction marks."""
    if isinstance(value, str) and len(value) > SHOWN_CHARS:
        return f"{value[:SHOWN_CHARS]!r}..."
    return repr(value)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object, with the place it stands at.

    Attributes:
        values: The object; keys nobody asks for are ignored.
        where: File and row, as shown to a person.
        path: Where in the row the object stands, such as ``trajectory[4].``; empty for the row itself.
    """

    values: Mapping[str, Any]
    where: str
    path: str = ""

    def error(self, name: str, expected: str, remedy: str) -> DataError:
        """The error for a field that is not what it should be."""
        return DataError(
            f"{self.where}, field {self.path}{name}: expected {expected}, found {describe(self.values.get(name))}; {remedy}"
        )

    def text(self, name: str, remedy: str) -> str:
        """A text that must be there and must not be blank."""
        value = self.values.get(name)
        if not isinstance(value, str) or not absent_to_empty(value):
            raise self.error(name, "a text that is not empty", remedy)
        return value

    def optional_text(self, name: str, default: str = "") -> str:
        """A text that may be absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, "text or null", f"write {name} as a JSON string")
        return absent_to_empty(value) or default

    def any_text(self, *names: str) -> str:
        """The first of some fields that is not absent, whatever its type, as text."""
        return next((text for text in (to_text(self.values.get(name)) for name in names) if text), "")

    def reference(self, name: str, remedy: str) -> str:
        """A reference answer: text or number (kept as text); a list of texts, of a question with several, is joined."""
        value = self.values.get(name)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return ", ".join(value)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not absent_to_empty(str(value)):
            raise self.error(name, "a reference answer (text or number)", remedy)
        return str(value)

    def identifier(self, name: str) -> str:
        """An id given as text or as a whole number, as text."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self.error(name, "a text or a whole number", f"give every row its own {name}")
        return str(value)

    def whole_number(self, name: str, remedy: str) -> int:
        """A whole number from zero up."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(name, "a whole number from 0 up", remedy)
        return value

    def object(self, name: str, remedy: str) -> "Fields":
        """A nested object."""
        value = self.values.get(name)
        if not isinstance(value, dict):
            raise self.error(name, "an object", remedy)
        return Fields(value, self.where, f"{self.path}{name}.")

    def objects(self, name: str, remedy: str) -> "tuple[Fields, ...]":
        """A list of objects, possibly empty."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.error(name, "a list of objects", remedy)
        for position, item in enumerate(value):
            if not isinstance(item, dict):
                element = f"{name}[{position}]"
                raise Fields({element: item}, self.where, self.path).error(element, "an object", remedy)
        return tuple(Fields(item, self.where, f"{self.path}{name}[{position}].") for position, item in enumerate(value))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: its place and its JSON value, or the whole message about why it could not be read."""

    where: str
    value: Any = None
    problem: str | None = None

    def checked_value(self) -> Any:
        """The value.

        Raises:
            DataError: The row could not be read.
        """
        if self.problem is not None:
            raise DataError(self.problem)
        return self.value

    def fields(self) -> Fields:
        """The row as an object.

        Raises:
            DataError: It could not be read, or is something else.
        """
        value = self.checked_value()
        if not isinstance(value, dict):
            raise DataError(f"{self.where}: expected a JSON object, found {describe(value)}; write one object for each row")
        return Fields(value, self.where)


def parse_row(where: str, content: bytes) -> Row:
    """Parse the bytes of one JSON value; trouble becomes the row's problem."""
    try:
        return Row(where, json.loads(content.decode("utf-8")))
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8; save the file as UTF-8"
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        problem = f"not valid JSON at {place} ({error.msg}); it may be cut short or edited: restore the file"
    except (RecursionError, ValueError):
        problem = "JSON is nested too deeply or holds a number that is too long; correct or remove it"
    return Row(where, problem=f"{where}: {problem}")


def read_bytes(path: Path) -> bytes:
    """A file's content, without a byte order mark.

    Raises:
        DataError: It cannot be read, or is empty.
    """
    try:
        content = path.read_bytes().removeprefix(UTF8_BOM)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}; check the path given with --data") from error
    if not content.strip():
        raise DataError(f"{path} is empty; check that it was downloaded or written completely")
    return content


def read_lines(path: Path) -> Iterator[Row]:
    """Rows of a JSON-lines file.

    Raises:
        DataError: The file cannot be read, or is empty.
    """
    return split_lines(path, read_bytes(path))


def split_lines(path: Path, content: bytes) -> Iterator[Row]:
    """Rows of a JSON-lines file's content, split at line feeds alone; blank lines are passed over."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield parse_row(f"{path}, line {number}", line)


def collect_episodes(source: Path, rows: Iterable[P], read: Callable[[P], Episode], *, skip_invalid: bool) -> LoadedEpisodes:
    """Read rows into episodes whose ids are unique.

    Args:
        source: What the rows come from, for messages.
        rows: The rows, in file order.
        read: Makes an episode of a row; raises ``DataError`` when it cannot.
        skip_invalid: Leave a bad row out and list it, instead of stopping; the first few are also logged.

    Raises:
        DataError: A row is bad and ``skip_invalid`` is off, or no episode remains.
    """
    episodes: dict[str, Episode] = {}
    places: dict[str, str] = {}
    skipped: list[str] = []
    for row in rows:
        try:
            episode = read(row)
            if episode.id in episodes:
                raise DataError(
                    f"{row.where}: episode id {shorten(episode.id)} was already used at {places[episode.id]}; "
                    "give every episode its own id"
                )
        except DataError as error:
            if not skip_invalid:
                raise DataError(f"{error} (or leave bad rows out with --skip-invalid)") from error
            skipped.append(str(error))
            continue
        episodes[episode.id] = episode
        places[episode.id] = row.where
    if skipped:
        shown = [*skipped[:SHOWN_ROWS], *(["..."] if len(skipped) > SHOWN_ROWS else [])]
        _logger.warning("%s: %d bad rows left out:\n  %s", source, len(skipped), "\n  ".join(shown))
    if not episodes:
        first = f"; the first of {len(skipped)} bad rows: {skipped[0]}" if skipped else ""
        raise DataError(f"no episode in {source}{first}; check that --dataset names the format of this file")
    return LoadedEpisodes(tuple(episodes.values()), tuple(skipped))


def check_increasing(steps: Iterable[Step], where: str, field: str) -> tuple[Step, ...]:
    """The steps, once their numbers are known to rise.

    Raises:
        DataError: A step's number is not greater than that of the step before.
    """
    checked: list[Step] = []
    for position, step in enumerate(steps):
        if checked and step.index <= checked[-1].index:
            raise DataError(
                f"{where}, field {field.format(position=position)}: {step.index} comes after {checked[-1].index}; "
                "list the steps in order, each number once"
            )
        checked.append(step)
    return tuple(checked)
