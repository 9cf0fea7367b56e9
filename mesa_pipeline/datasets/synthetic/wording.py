"""How questions speak of an environment: the words are the environment's, the rules that compute gold are shared."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """A remark and a question about it that share no content word, so that only meaning connects them.

    Attributes:
        key: Name of the topic, unique within the environment.
        statement: Log line with ``{answer}``.
        questions: Ways to ask.
        answers: Values of which a simulation picks one.
    """

    key: str
    statement: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationWording:
    """Words for one relation.

    Attributes:
        questions: Ways to ask for the tail, with ``{entity}`` for the head.
        description: Noun phrase for the tail, with ``{entity}`` for the head, to be asked about in turn.
        head_noun: What kind of thing the head is.
    """

    questions: tuple[str, ...]
    description: str
    head_noun: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Words of one environment.

    Attributes:
        agent: Noun phrase for whoever acts.
        attributes: Noun phrase with ``{entity}`` for each attribute.
        relations: Words for each relation.
        topics: Remarks that go by.
    """

    agent: str
    attributes: Mapping[str, str]
    relations: Mapping[str, RelationWording]
    topics: tuple[Topic, ...]

    def attribute(self, entity: str, attribute: str) -> str:
        """Noun phrase such as "the price of the oak desk"."""
        return self.attributes[attribute].format(entity=entity)
