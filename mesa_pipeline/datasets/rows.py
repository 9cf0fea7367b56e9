"""What the loaders share: the result record, and errors that name file, row, field and remedy."""

from dataclasses import dataclass

from mesa_pipeline.types import Episode

ABSENT_MARKS = {"", "\u2014"}


@dataclass(frozen=True)
class LoadedEpisodes:
    """Episodes in file order, and one line for each row that was left out under ``skip_invalid``."""

    episodes: tuple[Episode, ...]
    skipped: tuple[str, ...] = ()


def absent_to_empty(text: str | None) -> str:
    """``None``, an empty string and an em dash standing alone all mean "absent"."""
    return "" if text is None or text.strip() in ABSENT_MARKS else text
