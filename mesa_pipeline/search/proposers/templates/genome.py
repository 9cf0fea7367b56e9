"""Genomes: what a template policy's source is written from, and how it stands in its ``META``."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self, TypeAlias

from mesa_pipeline.evaluation.observables import Predicate

Gene: TypeAlias = bool | int | float | str | tuple[str, ...]
CrossingKind: TypeAlias = Literal["average", "gate"]


@dataclass(frozen=True)
class Genome:
    """A template with its parameters and what breeding added.

    Attributes:
        template: Name of the template.
        genes: One value for each gene of the template.
        repairs: Predicates whose questions get an effect of their own, on top of what the template expects.
        crossing: A second genome that shares the decision.
    """

    template: str
    genes: Mapping[str, Gene]
    repairs: tuple[Predicate, ...] = ()
    crossing: "Crossing | None" = None

    def to_json(self) -> dict[str, Any]:
        """The genome as literals; parts that are empty are left out."""
        plain: dict[str, Any] = {"template": self.template, "genes": {k: _plain(v) for k, v in sorted(self.genes.items())}}
        if self.repairs:
            plain["repairs"] = [predicate.to_json() for predicate in self.repairs]
        if self.crossing:
            plain["crossing"] = self.crossing.to_json()
        return plain

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``.

        Raises:
            KeyError: A part is missing.
            TypeError: A part is of another kind.
            ValueError: A predicate is none.
        """
        repairs = tuple(Predicate.from_json(predicate) for predicate in value.get("repairs", ()))
        crossing = Crossing.from_json(value["crossing"]) if value.get("crossing") else None
        return cls(value["template"], {k: _frozen(v) for k, v in value["genes"].items()}, repairs, crossing)


@dataclass(frozen=True)
class Crossing:
    """How a second genome takes part: by averaging what both expect, or by deciding alone where a predicate holds."""

    kind: CrossingKind
    other: Genome
    predicate: Predicate | None = None

    def to_json(self) -> dict[str, Any]:
        where = {"predicate": self.predicate.to_json()} if self.predicate else {}
        return {"kind": self.kind, "other": self.other.to_json(), **where}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Inverse of ``to_json``; raises as ``Genome.from_json`` does."""
        predicate = Predicate.from_json(value["predicate"]) if value.get("predicate") else None
        return cls(value["kind"], Genome.from_json(value["other"]), predicate)


@lru_cache(maxsize=1024)
def genome_of(source: str) -> Genome | None:
    """The genome a source was written from; ``None`` for a source that was not written from one."""
    try:
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "META":
                return Genome.from_json(ast.literal_eval(statement.value)["genome"])
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return None


def _plain(gene: Gene) -> Any:
    return list(gene) if isinstance(gene, tuple) else gene


def _frozen(gene: Any) -> Gene:
    return tuple(gene) if isinstance(gene, list) else gene
