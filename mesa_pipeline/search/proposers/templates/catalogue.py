"""The templates: families with the values their genes may take, and the directions that draw on them.

The first value of a gene is its default: the one that did best on the development data (docs/decisions/0090).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mesa_pipeline.search.proposers.templates.families import LABEL_KEYS
from mesa_pipeline.search.proposers.templates.genome import Gene, Genome

Choices = Mapping[str, tuple[Gene, ...]]

CHOICE_GENES: Choices = {
    "arms": (6, 4, 8, 12, 31),
    "share": (0.6, 0.5, 1.0),
    "price": (0.25, 0.5, 0.75, 1.0),
    "shrinkage": (1.0, 0.5, 2.0),
    "seen_tokens": (True, False),
}
"""Genes of every template: subsets considered, their largest share of all tokens, weight of the token price, shrinkage as a
multiple of the settings', and whether tokens are read off the previews or learnt with the scores."""

_CONTEXT: Choices = {"clusters": (8, 6, 12), "sources": ("STGVR", "TVR", "QTR")}
_FEW_ARMS: Choices = {"arms": (6, 4, 8, 12)}  # neighbours keep every row's gains, and a state has an end


@dataclass(frozen=True)
class Template:
    """A family of policies.

    Attributes:
        name: Its name.
        family: What writes it (see ``families``); several, joined by ``+``, are averaged.
        directions: Ids of the directions that draw on it.
        hypothesis: What it expects, in a sentence.
        genes: Values each gene may take.
    """

    name: str
    family: str
    directions: tuple[str, ...]
    hypothesis: str
    genes: Choices

    def choices(self, labels: bool) -> Choices:
        """The values of each gene; without labels, those that need none as long as there are any."""
        merged = {**CHOICE_GENES, **self.genes}
        return {name: tuple(v for v in values if labels or not needs_labels(v)) or values for name, values in merged.items()}

    def default(self, labels: bool) -> Genome:
        return Genome(self.name, {name: values[0] for name, values in self.choices(labels).items()})


def needs_labels(gene: Gene) -> bool:
    """Whether a gene's value is about labels alone; labels beside a context do no harm where there are none."""
    return isinstance(gene, tuple) and bool(LABEL_KEYS & set(gene)) and "context" not in gene


_TEMPLATES = (
    Template(
        "cue-rules",
        "rules",
        ("lexical-rules", "free"),
        "Words of the question that many questions share tell which subset suits them; the first rule that holds decides.",
        {
            "cues": (("form", "order", "matter"), ("form",), ("form", "order"), ("order", "matter"), ("matter",)),
            "rules": (4, 2, 6, 8),
            "support": (15, 8, 30),
            "seen_tokens": (False, True),
        },
    ),
    Template(
        "cue-rules-in-context",
        "rules+cells",
        ("lexical-rules",),
        "Words of the question tell which subset suits it, beside the kind of evidence that there is.",
        {
            "cues": (("form", "order", "matter"), ("form", "order"), ("order",), ("matter",)),
            "rules": (4, 2, 6),
            "support": (15, 30),
            "keys": (("context",), ("domain",), ("context", "anchor")),
            **_CONTEXT,
        },
    ),
    Template(
        "anchor-cells",
        "cells",
        ("temporal-anchors",),
        "Whether a question names steps, how many and how far apart, decides how much context it needs.",
        {
            "keys": (
                ("context", "anchor"),
                ("kind",),
                ("anchor",),
                ("kind", "order"),
                ("kind", "place"),
                ("domain", "kind"),
                ("context", "kind"),
            ),
            "wide": (3, 1, 10),
            **_CONTEXT,
        },
    ),
    Template(
        "label-cells",
        "cells",
        ("task-metadata", "free"),
        "Episodes of one domain store alike, so their questions are served by alike subsets; small groups lean on large ones.",
        {
            "keys": (
                ("domain", "anchor"),
                ("domain", "context", "anchor"),
                ("domain",),
                ("domain", "domain x anchor"),
                ("domain", "capability"),
                ("task", "anchor"),
                ("domain", "capability", "anchor"),
            ),
            "seen_tokens": (True, False),
            **_CONTEXT,
        },
    ),
    Template(
        "intent-cells",
        "cells",
        ("capability-inference",),
        "What a question asks for, recall, cause, state or abstraction, can be told from its words and decides what to read.",
        {
            "keys": (
                ("context", "intent", "anchor"),
                ("intent",),
                ("intent", "anchor"),
                ("domain", "intent", "anchor"),
                ("context", "intent"),
            ),
            **_CONTEXT,
        },
    ),
    Template(
        "context-cells",
        "cells",
        ("analogy", "evidence-quality"),
        "Evidence that shares its words comes from episodes of one kind, and these are served by alike subsets.",
        {"keys": (("context", "anchor"), ("context",), ("context", "kind"), ("context", "wording")), **_CONTEXT},
    ),
    Template(
        "preview-gates",
        "stumps",
        ("evidence-quality",),
        "A structure whose preview is empty, low in score or off the question's words is not worth its tokens.",
        {
            "numbers": (("previews",), ("previews", "question"), ("previews", "overlaps")),
            "rounds": (4, 2, 6),
            "rate": (0.5, 1.0),
        },
    ),
    Template(
        "preview-gates-in-context",
        "stumps+cells",
        ("evidence-quality",),
        "How good a preview must look depends on the kind of evidence that there is.",
        {
            "numbers": (("previews",), ("previews", "question")),
            "rounds": (4, 2),
            "rate": (0.5, 1.0),
            "keys": (("context", "anchor"), ("context",)),
            **_CONTEXT,
        },
    ),
    Template(
        "coverage",
        "coverage",
        ("redundancy-complementarity",),
        "A subset is worth what its previews cover of the question's words and steps, less what they say twice.",
        {"pairs": (False, True), "trust": (0.5, 0.25, 1.0)},
    ),
    Template(
        "coverage-in-context",
        "coverage+cells",
        ("redundancy-complementarity",),
        "What structures add to each other depends on what their previews cover and on the kind of evidence.",
        {"pairs": (False, True), "trust": (0.5, 0.25), "keys": (("context", "anchor"), ("context",)), **_CONTEXT},
    ),
    Template(
        "factored-utility",
        "factored",
        ("structure-utility",),
        "Each structure, and each pair, is worth a linear function of what can be seen; the best sum is read.",
        {
            "numbers": (
                ("previews", "question", "cues"),
                ("question", "cues"),
                ("previews", "question"),
                ("previews", "overlaps", "question", "cues"),
            ),
            "labels": (True, False),
            "pairs": (True, False),
        },
    ),
    Template(
        "factored-in-context",
        "factored+cells",
        ("structure-utility",),
        "A linear model of structures and pairs, averaged with what the kind of evidence is served by.",
        {
            "numbers": (("question", "cues"), ("previews", "question")),
            "labels": (False, True),
            "pairs": (True, False),
            "keys": (("context", "anchor"), ("domain", "anchor"), ("context",)),
            **_CONTEXT,
        },
    ),
    Template(
        "credited-structures",
        "credit",
        ("marginal-credit",),
        "A structure is read where adding it raised the score of questions of this kind beyond doubt.",
        {
            "keys": (("context",), ("domain",), ("anchor",), ("context", "anchor"), ("domain", "anchor"), ("kind",)),
            "top": (False, True),
            "caution": (0.5, 0.0, 1.0),
            **_CONTEXT,
        },
    ),
    Template(
        "neighbours",
        "neighbours",
        ("analogy", "free"),
        "The training questions most alike in words were served by the subsets that will serve this one.",
        {"sources": ("QTR", "STGVR", "Q", "QV"), "k": (50, 30, 80), "pull": (10.0, 5.0, 30.0), **_FEW_ARMS},
    ),
    Template(
        "cautious-cells",
        "cells",
        ("risk-cost-cascade",),
        "The subset that is best on average is left only for one whose advantage is beyond its error.",
        {
            "keys": (("context", "anchor"), ("domain", "anchor"), ("context",), ("domain",), ("kind",)),
            "caution": (0.25, 0.5, 1.0),
            **_CONTEXT,
        },
    ),
    Template(
        "agreement",
        "cells+neighbours",
        ("ensemble", "risk-cost-cascade"),
        "What kinds of evidence and near questions agree on is a safer guide than either.",
        {"keys": (("context", "anchor"), ("domain", "anchor")), "k": (50, 80), "pull": (10.0, 30.0), **_CONTEXT, **_FEW_ARMS},
    ),
    Template(
        "length-cells",
        "cells",
        ("length-difficulty",),
        "Short histories can be read widely, long ones must be read narrowly.",
        {"keys": (("length", "anchor"), ("length",), ("length", "wording"), ("context", "length")), **_CONTEXT},
    ),
)

TEMPLATES: Mapping[str, Template] = {template.name: template for template in _TEMPLATES}
"""Every template by name."""


def templates_of(direction: str) -> tuple[Template, ...]:
    """The templates a direction draws on; for one that names none, those of ``free``."""
    found = tuple(template for template in _TEMPLATES if direction in template.directions)
    return found or tuple(template for template in _TEMPLATES if "free" in template.directions)
