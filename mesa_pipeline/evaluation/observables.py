"""Features of a question that anyone can see before it is answered, and predicates over them.

Every feature is computed from what a policy's ``select`` is given, and each has its definition as an expression in the
language of a policy's source (``expression``), so that what is found with these features can be written down as a rule.
A feature that is not known of a question, such as a label of a person's own question or a preview nobody made, is absent;
a condition on it does not hold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from mesa_pipeline.policies.base import PolicyInput
from mesa_pipeline.subsets import STRUCTURE_CODES, STRUCTURE_NAMES
from mesa_pipeline.types import Preview

FeatureValue: TypeAlias = str | float | bool
Features: TypeAlias = dict[str, FeatureValue]
Comparison: TypeAlias = Literal["=", "<=", ">"]
MAX_CONDITIONS = 2

QUESTION_FORMS: Mapping[str, tuple[str, str]] = {
    "asks_how_many": (r"\bhow (?:many|much|often|long)\b|\bnumber of\b|\btotal\b", "asks for a count"),
    "asks_why": (r"\bwhy\b|\breasons?\b|\bexplain|\bcaused?\b", "asks for a reason"),
    "asks_how": (r"\bhow (?:did|does|do|was|were|is|are)\b", "asks how something happened"),
    "asks_when": (
        r"\bwhen\b|\b(?:which|what) (?:\w+ )?(?:steps?|turns?|date|day|month|year|time)\b",
        "asks when or at which step",
    ),
    "asks_where": (r"\bwhere\b|\blocations?\b|\bpositions?\b|\binventory\b", "asks for a place"),
    "asks_who": (r"\bwho(?:se|m)?\b", "asks for a person"),
    "asks_action": (r"\bactions?\b|\bcommands?\b|\btool calls?\b", "speaks of actions"),
    "asks_list": (r"\blist\b|\ball (?:the|of)\b|\bevery\b|\bsequence\b|\bhistory\b|\btrace\b", "asks for a list or a history"),
    "asks_change": (r"\bchang|\bstates?\b|\bupdat|\bbecame?\b|\bbefore and after\b", "asks for a state or a change"),
    "asks_exact": (r"\bexact|\bspecific|\bverbatim\b|\bprecise", "asks for something exact"),
    "hypothetical": (r"\bif\b|\bwould\b|\bcould\b|\bcounterfactual", "is hypothetical"),
    "compares": (r"\bcompar|\bdiffer|\bversus\b|\bvs\b|\bboth\b|\bthan\b", "compares things"),
    "orders_events": (
        r"\bbefore\b|\bafter\b|\buntil\b|\bfirst\b|\blast\b|\binitial|\bfinal",
        "speaks of before and after, first or last",
    ),
    "asks_pattern": (r"\boverall\b|\bstrateg|\bpatterns?\b|\bgoals?\b|\bsummar|\bmain\b|\bkey\b", "asks for the whole picture"),
    "quotes": (r"['\"`\u2018\u201c][^'\"`\u2019\u201d]{2,80}['\"`\u2019\u201d]", "quotes something"),
}
"""Regular expressions over the question in lower case, and what a match means in words."""

STEP_REFERENCE = (
    r"\b(?:time)?(?:step|turn)s?\b[\s#:(]*(\d{1,6})(?:\s*(?:-|\u2013|to|through|and|,)\s*(?:(?:step|turn)s?\s*)?(\d{1,6}))?"
)
"""Steps a question names, one or the two ends of a range at a time."""

LABELS = {"domain": "domain", "task_type": "task", "qa_type": "capability"}
_NEGATED = {
    "asks": "does not ask",
    "speaks": "does not speak",
    "is": "is not",
    "compares": "does not compare",
    "quotes": "does not quote",
}
_WORD = r"[a-z0-9]+"
_NUMBER_WORDS = {
    "words": "the question has {} words",
    "steps": "the trajectory has {} steps",
    "named_steps": "the question names {} steps",
    "named_span": "the steps it names span {} steps",
}
_STEPS_NAMED = f"[int(n) for pair in re.findall({STEP_REFERENCE!r}, q['question'].lower()) for n in pair if n]"
_NUMBER_EXPRESSIONS = {
    "words": "len(q['question'].split())",
    "steps": "q['steps']",
    "named_steps": f"len(set({_STEPS_NAMED}))",
    "named_span": f"max({_STEPS_NAMED}, default=0) - min({_STEPS_NAMED}, default=0)",
}
_PREVIEW_WORDS = {
    "items": "the {} evidence has {{}} pieces",
    "tokens": "the {} evidence has {{}} tokens",
    "top_score": "the best score of the {} evidence is {{}}",
    "overlap": "the share of the question's words in the {} preview is {{}}",
}


def observable_features(question: PolicyInput) -> Features:
    """Every feature that is known of a question, by name; the same for equal inputs, whatever the text.

    Boolean: each of ``QUESTION_FORMS``. Text: the labels that are known. Numbers: ``words`` of the question, ``steps`` of the
    trajectory, ``named_steps`` (how many different ones the question names), ``named_span`` (from the first to the last of
    them), and for the preview of each structure, such as ``G.items``: ``items`` (pieces retrieved, 0 where it found nothing),
    ``tokens``, ``top_score`` (where the structure scores) and ``overlap`` (share of the question's different words in it).
    """
    lowered = question.question.lower()
    named = [int(number) for pair in re.findall(STEP_REFERENCE, lowered) for number in pair if number]
    features: Features = {name: re.search(pattern, lowered) is not None for name, (pattern, _) in QUESTION_FORMS.items()}
    features |= {name: question.meta[name] for name in LABELS if name in question.meta}
    features |= {
        "words": float(len(question.question.split())),
        "steps": float(question.steps),
        "named_steps": float(len(set(named))),
        "named_span": float(max(named, default=0) - min(named, default=0)),
    }
    asked = set(re.findall(_WORD, lowered))
    for code in STRUCTURE_CODES:
        if code in question.previews:
            features |= _preview_features(code, question.previews[code], asked)
    return features


def _preview_features(code: str, preview: Preview, asked: set[str]) -> Features:
    shared = len(asked & set(re.findall(_WORD, preview.text.lower())))
    features: Features = {
        f"{code}.items": float(preview.n_items),
        f"{code}.tokens": float(preview.tokens),
        f"{code}.overlap": shared / max(1, len(asked)),
    }
    if preview.top_score is not None:
        features[f"{code}.top_score"] = float(preview.top_score)
    return features


@dataclass(frozen=True, order=True)
class Condition:
    """One comparison of a feature with a value; numbers are compared by size, all else for equality."""

    feature: str
    comparison: Comparison
    value: FeatureValue

    def holds(self, features: Mapping[str, FeatureValue]) -> bool:
        """Whether it is true of a question; never where the feature is absent."""
        found = features.get(self.feature)
        if found is None:
            return False
        if self.comparison == "=":
            return found == self.value
        if isinstance(found, str) or isinstance(self.value, str):
            return False
        return found <= self.value if self.comparison == "<=" else found > self.value

    @property
    def words(self) -> str:
        """The condition in plain words."""
        if self.feature in QUESTION_FORMS:
            verb, _, rest = QUESTION_FORMS[self.feature][1].partition(" ")
            return f"the question {verb if self.value else _NEGATED[verb]} {rest}"
        if self.feature in LABELS:
            return f"the {LABELS[self.feature]} is {self.value}"
        amount = f"{'at most' if self.comparison == '<=' else 'more than'} {self.value:g}"
        if self.feature in _NUMBER_WORDS:
            return _NUMBER_WORDS[self.feature].format(amount)
        code, _, name = self.feature.partition(".")
        return _PREVIEW_WORDS[name].format(STRUCTURE_NAMES[code]).format(amount)

    @property
    def expression(self) -> str:
        """The condition in the language of a policy's source, over the ``q`` that ``select`` is given."""
        if self.feature in QUESTION_FORMS:
            test = f"re.search({QUESTION_FORMS[self.feature][0]!r}, q['question'].lower())"
            return f"{test} is {'not ' if self.value else ''}None"
        if self.feature in LABELS:
            return f"q['meta'].get({self.feature!r}) == {self.value!r}"
        if self.feature in _NUMBER_EXPRESSIONS:
            return f"{_NUMBER_EXPRESSIONS[self.feature]} {self.comparison} {self.value!r}"
        code, _, name = self.feature.partition(".")
        preview = f"q['previews'][{code!r}]"
        value = {
            "items": f"{preview}['n_items']",
            "tokens": f"{preview}['tokens']",
            "top_score": f"{preview}['top_score']",
        }.get(name, _overlap_expression(preview))
        known = f"{code!r} in q['previews']" + (f" and {value} is not None" if name == "top_score" else "")
        return f"({known} and {value} {self.comparison} {self.value!r})"


def _overlap_expression(preview: str) -> str:
    asked = f"set(re.findall({_WORD!r}, q['question'].lower()))"
    return f"len({asked} & set(re.findall({_WORD!r}, {preview}['text'].lower()))) / max(1, len({asked}))"


@dataclass(frozen=True, order=True)
class Predicate:
    """One or two conditions, all of which must hold."""

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.conditions) <= MAX_CONDITIONS:
            raise ValueError(f"a predicate has 1 to {MAX_CONDITIONS} conditions, not {len(self.conditions)}")

    def holds(self, features: Mapping[str, FeatureValue]) -> bool:
        """Whether it is true of a question with these features."""
        return all(condition.holds(features) for condition in self.conditions)

    @property
    def words(self) -> str:
        """The predicate in plain words."""
        return " and ".join(condition.words for condition in self.conditions)

    @property
    def expression(self) -> str:
        """The predicate in the language of a policy's source, over the ``q`` that ``select`` is given."""
        return " and ".join(condition.expression for condition in self.conditions)

    def to_json(self) -> list[dict[str, Any]]:
        return [{"feature": c.feature, "comparison": c.comparison, "value": c.value} for c in self.conditions]

    @classmethod
    def from_json(cls, value: list[dict[str, Any]]) -> Self:
        """Inverse of ``to_json``."""
        return cls(tuple(Condition(**condition) for condition in value))
