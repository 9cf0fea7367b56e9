"""Supplies of names that never repeat within an episode, however long it gets."""

from collections.abc import Iterator, Sequence
from itertools import count, product
from random import Random


def unique_names(rng: Random, pattern: str, *parts: Sequence[str]) -> Iterator[str]:
    """All combinations of ``parts`` in random order, then the same again with a number; endless.

    Args:
        rng: Decides the order.
        pattern: ``str.format`` pattern with one positional field for each part and ``{n}`` for the number, which is empty in
            the first round.
        parts: Words for each field.
    """
    combinations = list(product(*parts))
    for number in count(1):
        rng.shuffle(combinations)
        for words in combinations:
            yield pattern.format(*words, n=number if number > 1 else "")


def unique_identifiers(rng: Random, prefix: str) -> Iterator[str]:
    """``prefix`` with random digits, never the same twice; the number of digits grows as they are used up."""
    used: set[int] = set()
    while True:
        number = rng.randrange(1000, max(10_000, 20 * len(used)))
        if number not in used:
            used.add(number)
            yield f"{prefix}{number}"
