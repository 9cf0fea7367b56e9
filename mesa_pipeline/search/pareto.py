"""Score against tokens over the archive: for any price of a token the best policy is on the front, read off afterwards."""

from collections.abc import Sequence

from mesa_pipeline.search.archive import OBJECTIVE_DIGITS
from mesa_pipeline.search.records import ArchiveEntry


def pareto_front(entries: Sequence[ArchiveEntry]) -> tuple[ArchiveEntry, ...]:
    """Entries that no other one equals or beats on both validation score and tokens, cheapest first."""
    front: list[ArchiveEntry] = []
    for entry in sorted(entries, key=lambda entry: (entry.validation.tokens, -entry.validation.score)):
        if not front or entry.validation.score > front[-1].validation.score:
            front.append(entry)
    return tuple(front)


def best_at(entries: Sequence[ArchiveEntry], lambda_: float) -> ArchiveEntry:
    """The entry of highest validation J - lambda C at another token price; ties go to fewer tokens, then to the earliest."""

    def objective(entry: ArchiveEntry) -> float:
        return entry.validation.score - lambda_ * entry.validation.tokens

    return min(entries, key=lambda entry: (-round(objective(entry), OBJECTIVE_DIGITS), entry.validation.tokens))


def hypervolume(entries: Sequence[ArchiveEntry], max_tokens: float) -> float:
    """Share of the rectangle (0 to ``max_tokens``) x (score 0 to 1) that the front dominates, in [0, 1]."""
    front = [entry for entry in pareto_front(entries) if entry.validation.tokens < max_tokens]
    ends = [*(entry.validation.tokens for entry in front[1:]), max_tokens]
    area = sum(entry.validation.score * (end - entry.validation.tokens) for entry, end in zip(front, ends, strict=False))
    return area / max_tokens if max_tokens > 0 else 0.0
