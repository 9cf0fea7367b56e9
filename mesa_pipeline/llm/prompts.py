"""Prompts: text files with places to fill, whose fingerprint goes into the key of everything made with them."""

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Self

from mesa_pipeline.artifacts import fingerprint


@dataclass(frozen=True)
class Prompt:
    """A prompt with places such as ``$question``.

    Attributes:
        text: The wording.
    """

    text: str

    @classmethod
    def load(cls, path: Path) -> Self:
        """The prompt in a file."""
        return cls(path.read_text(encoding="utf-8").strip())

    @property
    def fingerprint(self) -> str:
        """Changes with the wording."""
        return fingerprint("prompt", self.text)

    def fill(self, **values: object) -> str:
        """The prompt with its places filled; what is filled in may hold anything, places too, which then stay as they are.

        Raises:
            KeyError: A place was not filled.
        """
        filled = Template(self.text).substitute({name: str(value) for name, value in values.items()})
        return filled.encode("utf-8", "replace").decode("utf-8")
