"""Open extraction by a language model in two requests a passage: entities, then triples (paper, A.1 and C.2).

The second request goes on from the first, so that a server with a prefix cache reads the passage once. There is no worked
example in the prompts, and so none whose entities could turn up in a graph.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from mesa_pipeline.llm import ChatModel, Completion, Message, OpenChat
from mesa_pipeline.llm.structured import ListReply, read_list
from mesa_pipeline.structures.llm_prompts import ASKS, as_json, load_prompt, prompts_fingerprint, user_message, valid_unicode
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.triples import TERM, Triple
from mesa_pipeline.types import Step

logger = logging.getLogger(__name__)

PARSE_VERSION = 1
MAX_ENTITIES = 400
MAX_ENTITY_CHARS = 200
MAX_TRIPLES = 1000
PLACEHOLDERS = {"", "...", "…"}
ENTITY_KEYS = ("entities", "named_entities")
ENTITY_NAMES = ("name", "entity", "text")
TRIPLE_KEYS = ("triples", "relations", "facts")
PART_NAMES = (
    ("subject", "head", "source", "s"),
    ("relation", "predicate", "rel", "r", "p"),
    ("object", "tail", "target", "o"),
)
ENTITIES_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"entities": {"type": "array", "items": {"type": "string"}}},
    "required": ["entities"],
    "additionalProperties": False,
}
TRIPLES_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "triples": {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3}}
    },
    "required": ["triples"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class LlmExtractor:
    """A ``TripleExtractor`` that asks a language model; its triples know no step and are anchored afterwards.

    A passage whose triples were cut at the longest reply is asked about once more, in two halves; what was whole in the reply
    that was cut is kept all the same.

    Attributes:
        chat: Opens the model.
    """

    chat: OpenChat

    def identity(self) -> Mapping[str, Any]:
        return {
            "kind": "llm",
            "version": PARSE_VERSION,
            "models": [self._entity_model.name, self._triple_model.name],
            "prompts": prompts_fingerprint("entities", "triples"),
        }

    def extract(self, passage: Sequence[Step]) -> list[Triple]:
        """See ``triples.TripleExtractor``. A passage without any text is not asked about.

        Raises:
            ModelError: The model gave no reply.
        """
        if all(step.is_empty for step in passage):
            return []
        entities = self._entities(passage)
        found = self._triples(passage, entities)
        triples = list(found.triples)
        if found.was_cut:
            for half in halves(passage):
                triples += self._triples(half, entities).triples
        return list(dict.fromkeys(triples))

    def _entities(self, passage: Sequence[Step]) -> list[str]:
        named = read_entities(_ask(self._entity_model, (), _about(passage), ENTITY_KEYS).reply)
        text = _text_of(passage).casefold()
        return [name for name in named if is_grounded(name, text)]

    def _triples(self, passage: Sequence[Step], entities: Sequence[str]) -> "_Found":
        named = Message("assistant", as_json({"entities": entities}))
        before = (user_message(_about(passage), 0), named)
        asked = _ask(self._triple_model, before, load_prompt("triples").text, TRIPLE_KEYS)
        if not (asked.reply.items or asked.reply.complete or asked.was_cut):
            first, last = passage[0].index, passage[-1].index
            logger.warning("%s gave no list of triples for steps %d-%d", self._triple_model.name, first, last)
        text = _text_of(passage).casefold()
        grounded = (triple for triple in read_triples(asked.reply) if is_grounded(f"{triple.subject} {triple.object}", text))
        return _Found(tuple(grounded), asked.was_cut)

    @cached_property
    def _entity_model(self) -> ChatModel:
        return self.chat("extract", ENTITIES_SCHEMA)

    @cached_property
    def _triple_model(self) -> ChatModel:
        return self.chat("extract", TRIPLES_SCHEMA)


@dataclass(frozen=True)
class _Found:
    triples: tuple[Triple, ...]
    was_cut: bool


@dataclass(frozen=True)
class _Asked:
    reply: ListReply
    was_cut: bool


def _about(passage: Sequence[Step]) -> str:
    return load_prompt("entities").fill(passage=_text_of(passage))


def _text_of(passage: Sequence[Step]) -> str:
    return "\n\n".join(serialize_step(step).text for step in passage)


def _ask(model: ChatModel, before: Sequence[Message], request: str, keys: Sequence[str]) -> _Asked:
    """A list from the model. Prose is asked for again; a list that was cut is not, since it would be cut again."""
    asked = _Asked(ListReply((), False), False)
    for ask in range(ASKS):
        completion = model.complete([*before, user_message(request, ask)], ask)
        reply = read_list(completion.text, keys)
        asked = _Asked(reply, _was_cut(completion, reply))
        if reply.items or reply.complete or asked.was_cut:
            break
    return asked


def _was_cut(completion: Completion, reply: ListReply) -> bool:
    return not reply.complete and (completion.finish_reason == "length" or bool(reply.items))


def read_entities(reply: ListReply) -> list[str]:
    """The entities of a reply, each once, in order: strings, numbers, or objects with a name."""
    named = (_text(_first_of(item, ENTITY_NAMES) if isinstance(item, dict) else item) for item in reply.items)
    distinct = dict.fromkeys(name[:MAX_ENTITY_CHARS] for name in named if name not in PLACEHOLDERS)
    return list(distinct)[:MAX_ENTITIES]


def is_grounded(named: str, text: str) -> bool:
    """Whether a word of what a model names stands in the passage; weak models name what the instructions speak of.

    Args:
        named: Entities.
        text: The passage, case folded.
    """
    words = TERM.findall(named.casefold())
    return not words or any(word in text for word in words)


def read_triples(reply: ListReply) -> tuple[Triple, ...]:
    """The triples of a reply, each once, in order: lists of three, or objects that name the three parts. Others are dropped."""
    parts = (_parts(item) for item in reply.items)
    whole = (Triple(three[0], three[1], three[2]) for three in parts if len(three) == 3 and not PLACEHOLDERS & set(three))
    return tuple(dict.fromkeys(whole))[:MAX_TRIPLES]


def _parts(item: Any) -> list[str]:
    if isinstance(item, dict):
        item = [_first_of(item, names) for names in PART_NAMES]
    return [_text(part) for part in item] if isinstance(item, list) else []


def _first_of(item: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((item[name] for name in names if name in item), None)


def _text(value: Any) -> str:
    """A JSON value as text, valid Unicode: escapes in JSON can spell halves of surrogate pairs."""
    if value is None:
        return ""
    return valid_unicode(value).strip() if isinstance(value, str) else as_json(value)


def halves(passage: Sequence[Step]) -> list[tuple[Step, ...]]:
    """A passage in two: between the steps nearest to its middle, or through the text of its only step.

    What cannot be divided gives no halves.
    """
    if len(passage) > 1:
        sizes = [len(serialize_step(step).text) for step in passage]
        ends = list(accumulate(sizes))[:-1]
        middle = min(range(len(ends)), key=lambda k: abs(2 * ends[k] - sum(sizes))) + 1
        return [tuple(passage[:middle]), tuple(passage[middle:])]
    return _text_halves(passage[0])


def _text_halves(step: Step) -> list[tuple[Step, ...]]:
    """Halves of the longer one of action and observation; the other stays with the first."""
    if len(step.observation) >= len(step.action):
        middle = len(step.observation) // 2
        parts = [Step(step.index, step.action, step.observation[:middle]), Step(step.index, "", step.observation[middle:])]
    else:
        middle = len(step.action) // 2
        parts = [Step(step.index, step.action[:middle], step.observation), Step(step.index, step.action[middle:], "")]
    return [(part,) for part in parts] if middle else []
