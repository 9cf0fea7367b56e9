"""The report as data: what every rendering of it shows, and nothing about how.

HTML and Markdown are both made from one ``Report``, so they cannot disagree on a figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Align = Literal["left", "right"]


@dataclass(frozen=True)
class Column:
    """A column's heading; ``unit`` stands beside it in a quieter voice, and cells that ``wrap`` hold sentences."""

    title: str
    align: Align = "right"
    unit: str = ""
    wraps: bool = False


@dataclass(frozen=True)
class Cell:
    """One value as it is shown.

    Attributes:
        text: What is read.
        order: What a sort by this column compares, where that is not the text.
        structures: Codes of the structures of a subset, where the cell names one: drawn as chips where colour is at hand.
    """

    text: str
    order: float | None = None
    structures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A line of a table; ``highlighted`` marks the one the report is about."""

    cells: tuple[Cell, ...]
    highlighted: bool = False


@dataclass(frozen=True)
class Table:
    """A table with its caption, which says over how many questions and with what interval."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str
    sortable: bool = False


@dataclass(frozen=True)
class Figure:
    """A drawing: ``svg`` is a whole SVG document, ``description`` says in words what it shows."""

    name: str
    title: str
    svg: str
    caption: str
    description: str


@dataclass(frozen=True)
class Listing:
    """A text to be read line by line, such as code; ``language`` names its syntax."""

    name: str
    title: str
    code: str
    caption: str
    language: str


Item: TypeAlias = Table | Figure | Listing


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, then figures, tables and listings in order, then a list of lines."""

    anchor: str
    title: str
    paragraphs: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeyFigure:
    """A number worth large type, with what it means beside it."""

    value: str
    meaning: str
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """Everything a report says.

    Attributes:
        title: Heading of the page.
        verdict: The result in one sentence.
        notes: Sentences that qualify the verdict.
        key_figures: The numbers of the verdict.
        sections: What follows, in order.
        metrics: Flat figures by name; scores and shares in [0, 1], tokens and counts as they are; absent where unknown.
        series: Contents of comma-separated files by name, the data behind the figures.
    """

    title: str
    verdict: str
    notes: tuple[str, ...]
    key_figures: tuple[KeyFigure, ...]
    sections: tuple[Section, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every drawing, in order."""
        return tuple(item for section in self.sections for item in section.items if isinstance(item, Figure))
