"""Subject-verb-object relations of plain sentences, from the phrase chunks of a lexicon-based tagger.

The tagger is TextBlob's (Brill's algorithm over a lexicon that the package ships): fast, deterministic and offline; see
``docs/decisions/0041-open-extraction.md`` for what it was weighed against.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from mesa_pipeline.structures.triples import Triple

AGENT = "agent"
MAX_TOKENS = 60
MAX_PHRASE = 12
MAX_ARGUMENTS = 8
MAX_RELATION = 60
MAX_FRAGMENT = 14
CONTINUED = (["PP"], ["VP"], ["NP"])
OUTSIDE = {"IN": "PP", "TO": "PP", "RP": "PP", "RB": "ADVP", "JJ": "ADJP", "PRP": "NP", "CD": "NP", "VB": "VP", "VBP": "VP"}
WORD = re.compile(r"`[^`\s]{1,40}`|'s\b|[./\\@#$]{0,2}\w+(?:[./\\:@+-]{1,2}\w+)*|[^\w\s]")
SENTENCE_END = re.compile(r"(?<=[.!?;])[\"')\]]{0,3}\s+")
CONTRACTION = re.compile(r"(\w)(n't|'m|'re|'ve|'ll|'d)\b", re.IGNORECASE)
EXPANSIONS = {"n't": " not", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will", "'d": " would"}
QUOTES = set("'\"`\u201c\u201d\u2018")
SUBJECT_PRONOUNS = {"i", "you", "we", "they", "he", "she"}
CLAUSE_WORDS = {"when", "while", "because", "if", "where", "that", "which", "who", "but", "so"}
OBJECT_PRONOUNS = {"me", "you", "him", "us", "them", "her"}
SPEAKER_WORDS = {"i", "me", "we", "us", "myself"}
SPEAKER_OWN = {"my", "our", "mine", "ours"}
VAGUE = {
    *("it", "this", "that", "these", "those", "he", "she", "they", "him", "her", "them", "there", "what", "who", "which"),
    *("you", "something", "anything", "everything", "nothing", "one", "all", "here", "how", "why", "when", "where", "so", "if"),
}
DETERMINERS = {"a", "an", "the", "this", "that", "these", "those", "some", "any"}
TIME_WORDS = {
    *("yesterday", "today", "tomorrow", "tonight", "recently", "now", "ago", "week", "weekend", "month", "year", "morning"),
    *("afternoon", "evening", "night", "day", "days", "weeks", "months", "years", "last", "next", "monday", "tuesday"),
    *("wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
}


@dataclass(frozen=True, slots=True)
class _Chunk:
    kind: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


class _TimedPhrase(NamedTuple):
    words: tuple[str, ...]
    time: str


def sentence_triples(text: str, speaker: str = "") -> Iterator[Triple]:
    """Relations of the sentences of one line of text, in order.

    Args:
        text: A line of prose; anything else yields little or nothing.
        speaker: Who "I" is; without it, sentences about "I" are about "agent".
    """
    for sentence in SENTENCE_END.split(text):
        words = _words(sentence)
        if len(words) >= 2 and not sentence.rstrip().endswith("?"):
            yield from _relations(_chunks(words), speaker or AGENT)


def fragment_triple(text: str) -> Triple | None:
    """A short line without a verb, such as ``tree 5 steps to your south-east``: its first phrase with all that follows."""
    words = _words(text)
    if not 2 <= len(words) <= MAX_FRAGMENT or text.endswith((":", "?")):
        return None
    chunks = _chunks(words)
    if chunks[0].kind != "NP" or any(chunk.kind in ("VP", ",") for chunk in chunks):
        return None
    number = next((position for position, word in enumerate(words) if position and word[0].isdigit()), len(words))
    cut = min(len(chunks[0].words), number)
    subject = _entity(words[:cut], AGENT)
    rest = words[cut:]
    return Triple(subject, "is", " ".join(rest)) if subject and len(rest) > 1 - (cut < number) else None


def _words(sentence: str) -> list[str]:
    plain = CONTRACTION.sub(lambda match: match[1] + EXPANSIONS[match[2].lower()], sentence.replace("\u2019", "'"))
    return [word for word in WORD.findall(plain) if word not in QUOTES][:MAX_TOKENS]


@cache
def _tagger() -> Any:
    from textblob.en import parser

    return parser


def _chunks(words: Sequence[str]) -> list[_Chunk]:
    """Phrases in order; a number joins the noun phrase before it, as in ``cabinet 1``."""
    tagged = _tagger().parse([" ".join(words)], tokenize=False, collapse=False)[0]
    chunks: list[_Chunk] = []
    for word, tag, chunk, _ in tagged:
        kind = "NP" if word[0].isdigit() else chunk[2:] if chunk != "O" else OUTSIDE.get(tag, tag[:1] or ".")
        last = chunks[-1] if chunks else None
        if word == "'s":
            kind = "NP" if last and last.kind == "NP" and last.text.lower() not in VAGUE else "VP"
        if last and last.kind == kind == "NP" and "'s" in (word, last.words[-1]):
            chunks[-1] = _Chunk(kind, (*last.words, word))
            continue
        if last and last.kind == "NP" and last.text.lower() in SUBJECT_PRONOUNS and kind == "NP":
            kind = "VP"  # no noun follows such a pronoun: the tagger took a verb for one, as in "You face the cow"
        elif last and kind == last.kind and (chunk.startswith("I-") or word[0].isdigit()):
            separate = kind == "NP" and last.text.lower() in OBJECT_PRONOUNS
            if not separate:
                chunks[-1] = _Chunk(kind, (*last.words, word))
                continue
        chunks.append(_Chunk(kind, (word,)))
    return chunks


def _relations(chunks: Sequence[_Chunk], speaker: str) -> Iterator[Triple]:
    place = _opening_place(chunks, speaker)
    subject = ""
    for position, chunk in enumerate(chunks):
        if chunk.kind != "VP":
            continue
        if not _is_coordinated(chunks, position):
            subject = _subject(chunks, position, speaker)
        if not subject:
            continue
        for triple in _arguments(chunks, position, subject, speaker):
            yield triple
            if place and triple.subject == subject:
                yield Triple(triple.object, place.relation, place.object)


def _opening_place(chunks: Sequence[_Chunk], speaker: str) -> Triple | None:
    """``On the shelf 1, you see``: where what the sentence goes on to name is; subject left open."""
    if [chunk.kind for chunk in chunks[:2]] != ["PP", "NP"]:
        return None
    name = _entity(chunks[1].words, speaker)
    return Triple("", chunks[0].text.lower(), name) if name else None


def _is_coordinated(chunks: Sequence[_Chunk], verb: int) -> bool:
    """Whether the verb shares the subject of the one before it, as in "signed up and paid"."""
    before = [chunk.kind for chunk in chunks[:verb] if chunk.kind != "ADVP"]
    return before[-1:] == ["C"]


def _subject(chunks: Sequence[_Chunk], verb: int, speaker: str) -> str:
    """The noun phrase before the verb, adverbs between them passed over; empty when it names nothing."""
    for chunk in reversed(chunks[:verb]):
        if chunk.kind == "NP":
            return _entity(chunk.words, speaker)
        if chunk.kind not in ("ADVP", "VP"):
            return ""
    return ""


def _arguments(chunks: Sequence[_Chunk], verb: int, subject: str, speaker: str) -> Iterator[Triple]:
    """``went | to the group`` is one relation of the subject; ``took the bar | from the basin`` also one of the object."""
    verb_text = chunks[verb].text
    source, relation, told = subject, verb_text, verb_text
    found = 0
    for position, chunk in enumerate(chunks[verb + 1 :], start=verb + 1):
        if chunk.text.lower() in CLAUSE_WORDS or found == MAX_ARGUMENTS or len(relation) > MAX_RELATION:
            return
        following = [later.kind for later in chunks[position + 1 : position + 3]]
        if chunk.kind == "," and following[:1] == ["C"]:
            continue
        if chunk.kind in (",", "C") and found and following[:1] == ["NP"] and "VP" not in following:
            relation = told  # one more of the same: "a cloth 2, a towel 1 and a soapbar 3"
        elif chunk.kind in ("PP", "ADVP") or (chunk.kind in ("VP", "ADJP") and not found and following[:1] in CONTINUED):
            relation = f"{relation} {chunk.text}"
        elif chunk.kind in ("NP", "ADJP"):
            phrase = _split_time(chunk.words)
            target = _entity(phrase.words, speaker)
            origin = subject if relation in (verb_text, told) else source
            if (target or phrase.time) and target != origin:
                yield Triple(origin, relation, target or phrase.time, time=phrase.time if target else "")
            source, told = target or source, relation
            found += 1
            relation = verb_text
        else:
            return


def _split_time(words: Sequence[str]) -> _TimedPhrase:
    """Take trailing words such as ``last week`` off a noun phrase."""
    end = len(words)
    while end and words[end - 1].lower() in TIME_WORDS:
        end -= 1
    return _TimedPhrase(tuple(words[:end]), " ".join(words[end:]))


def _entity(words: Sequence[str], speaker: str) -> str:
    """A noun phrase without its article, with "my" and "I" resolved to the speaker; empty for a pronoun."""
    kept = list(words)
    while kept and kept[0].lower() in DETERMINERS:
        kept = kept[1:]
    if not kept or len(kept) > MAX_PHRASE:
        return ""
    first, last = kept[0].lower(), kept[-1].lower()
    if last in SPEAKER_WORDS or (last == "you" and speaker == AGENT):
        return speaker  # also "last week I", which the tagger takes for one phrase
    if last in SUBJECT_PRONOUNS:
        return ""
    if len(kept) == 1:
        return "" if first in VAGUE or not kept[0][0].isalnum() else kept[0]
    if first in SPEAKER_OWN:
        kept[0] = f"{speaker}'s"
    return " ".join(kept).replace(" 's", "'s")
