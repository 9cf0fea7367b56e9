"""Compose: the evidence of a subset of structures as one text (paper, Eq. 4).

Sections stand in the fixed order S R V T G, so that prompts share long prefixes. A step record that an earlier section already
shows is not repeated in V or T but referred to by its step number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mesa_pipeline import subsets
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem, Section

COMPOSE_VERSION = 1
HEADINGS = {
    "S": "## Summary of the trajectory",
    "R": "## Excerpts of the raw trajectory",
    "V": "## Steps similar to the question",
    "T": "## Steps by time",
    "G": "## Relations",
}
ALONE = "## Evidence from memory"
REFERRING_STRUCTURES = ("V", "T")
BREAK = "\n\n"


@dataclass
class Composer:
    """Composes one question's evidence, any number of subsets, each distinct section rendered and counted once.

    Args:
        evidence: What each structure returned for the question, by code; a structure that is missing counts as empty.
        counter: Counts evidence tokens.
    """

    evidence: Mapping[str, Evidence]
    counter: TokenCounter
    _sections: dict[tuple[str, frozenset[int]], Section] = field(default_factory=dict, repr=False)

    def compose(self, subset: int) -> ComposedEvidence:
        """The sections of a subset; structures with no evidence have none.

        The token count of the whole is the sum over sections exactly: every section ends with a blank line and begins with a
        heading mark, and the pre-tokenisers of current models never join the two.
        """
        selected = subsets.decode(subset)
        shown: set[int] = set()
        sections: list[Section] = []
        for code in subsets.COMPOSE_ORDER:
            found = self.evidence.get(code)
            if code not in selected or found is None or found.is_empty:
                continue
            sections.append(self._section(found, frozenset(shown)))
            shown.update(_recorded_steps(found))
        return ComposedEvidence(tuple(sections))

    def _section(self, evidence: Evidence, shown: frozenset[int]) -> Section:
        repeated = shown & _recorded_steps(evidence) if evidence.structure in REFERRING_STRUCTURES else frozenset()
        key = (evidence.structure, repeated)
        if key not in self._sections:
            text = render_section(evidence, repeated)
            self._sections[key] = Section(evidence.structure, text, self.counter.count(text), evidence.truncated)
        return self._sections[key]


def compose_alone(evidence: Evidence, counter: TokenCounter) -> ComposedEvidence:
    """The evidence of a memory system that is read alone, such as a baseline."""
    if evidence.is_empty:
        return ComposedEvidence()
    text = render_section(evidence)
    return ComposedEvidence((Section(evidence.structure, text, counter.count(text), evidence.truncated),))


def render_section(evidence: Evidence, shown: frozenset[int] = frozenset()) -> str:
    """Heading and items of one structure; records whose every step is in ``shown`` become a reference."""
    repeated = [item for item in evidence.items if _is_repeated(item, shown)]
    parts = [item.text for item in evidence.items if not _is_repeated(item, shown)]
    if repeated:
        steps = sorted({step for item in repeated for step in item.steps})
        parts.append("Also relevant, shown above: " + ", ".join(f"step {step}" for step in steps))
    return BREAK.join([HEADINGS.get(evidence.structure, ALONE), *parts]).rstrip() + BREAK


def _recorded_steps(evidence: Evidence) -> frozenset[int]:
    return frozenset(step for item in evidence.items if item.is_record for step in item.steps)


def _is_repeated(item: EvidenceItem, shown: frozenset[int]) -> bool:
    return item.is_record and bool(item.steps) and shown.issuperset(item.steps)
