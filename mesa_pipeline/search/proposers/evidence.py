"""The evidence in a prompt: what was tried and what became of it, the most telling first where not all of it fits."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.config import LlmProposerSettings
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.evaluation.failures import Effect, FailureCard
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, policy_inputs
from mesa_pipeline.search.archive import OBJECTIVE_DIGITS
from mesa_pipeline.search.proposers import ProposalRequest
from mesa_pipeline.search.proposers.quoting import cleaned, fenced, record
from mesa_pipeline.search.records import ArchiveEntry, ArmStatistics, Rejection

INTRODUCTIONS_FOLDER = Path(__file__).parent / "prompts" / "evidence"
TEXT_CHARS = 400
CARD_TEXT_CHARS = 2000
MAX_LABEL_VALUES = 20
SPACE_ORDER = ("parent", "cards", "arms", "training", "rejections", "source", "archive")
"""Which sections are given space first."""
PARENT_SHARE, SOURCE_SHARE = 2, 8
"""The policy to build on takes at most one part in two of the space, each other source one in eight."""
DECIMALS = 5


@dataclass(frozen=True)
class Section:
    """A part of the evidence.

    Attributes:
        introduction: Name of the file that introduces it.
        language: What its items are written in.
        items: The most telling first.
    """

    introduction: str
    language: str
    items: Sequence[str]

    def text(self, count: int) -> str:
        """The section with its first ``count`` items; nothing without any."""
        if not count:
            return ""
        left_out = len(self.items) - count
        note = f"{left_out} more are left out for length.\n" if left_out else ""
        introduction = (INTRODUCTIONS_FOLDER / f"{self.introduction}.md").read_text(encoding="utf-8").strip()
        return f"\n{introduction}\n\n{fenced(self.language, self.items[:count])}{note}"

    def fitted(self, chars: int) -> str:
        """The section with as many items as ``chars`` characters hold."""
        counts = range(len(self.items) + 1)
        return self.text(max(0, bisect_right(counts, chars, key=lambda count: len(self.text(count))) - 1))


def evidence(request: ProposalRequest, settings: LlmProposerSettings, chars: int) -> str:
    """All sections in the order of reading, within ``chars`` characters altogether."""
    sections = _sections(request, settings, max(0, chars))
    texts = [""] * len(sections)
    for position in sorted(range(len(sections)), key=lambda position: SPACE_ORDER.index(sections[position].introduction)):
        texts[position] = sections[position].fitted(chars - sum(map(len, texts)))
    return "".join(texts)


def _sections(request: ProposalRequest, settings: LlmProposerSettings, chars: int) -> list[Section]:
    parents = [request.parent] if request.parent else []
    rejected = [r for r in reversed(request.rejections) if r.direction == request.direction.id][: settings.rejections]
    return [
        Section("training", "json", [_training(request.train, request.context)]),
        Section("arms", "json", [_arm(arm) for arm in request.arms]),
        *(Section("parent", "python", [_source(entry, chars // PARENT_SHARE)]) for entry in parents),
        Section("archive", "json", [_entry(entry) for entry in _best_first(request.archive)]),
        *(Section("source", "python", [_source(e, chars // SOURCE_SHARE)]) for e in _shown_whole(request, settings.sources)),
        Section("cards", "json", [_card(card) for card in request.cards]),
        Section("rejections", "json", [_rejection(rejection) for rejection in rejected]),
    ]


def _shown_whole(request: ProposalRequest, count: int) -> list[ArchiveEntry]:
    """The best of this direction, then of each other one, then the rest; the best first, no two that behave alike."""
    ranked = _best_first(request.archive)
    own = [entry for entry in ranked if entry.direction == request.direction.id][:1]
    best_of_each = {entry.direction: entry for entry in reversed(ranked)}
    leaders = [entry for entry in ranked if best_of_each[entry.direction] is entry]
    distinct = {request.parent.behaviour: request.parent} if request.parent else {}
    for entry in (*own, *leaders, *ranked):
        distinct.setdefault(entry.behaviour, entry)
    return [entry for entry in distinct.values() if entry is not request.parent][:count]


def _best_first(entries: Iterable[ArchiveEntry]) -> list[ArchiveEntry]:
    return sorted(entries, key=lambda e: (-round(e.validation.objective, OBJECTIVE_DIGITS), e.validation.tokens))


def _training(train: OutcomeMatrix, context: FitContext) -> str:
    inputs = policy_inputs(train, context.labels)
    steps = [question.steps for question in inputs]
    names = sorted({name for question in inputs for name in question.meta})
    return record(
        TEXT_CHARS,
        questions=len(train),
        episodes=len(set(train.episode_ids)),
        steps=dict(zip(("least", "median", "most"), np.quantile(steps, (0, 0.5, 1)).tolist(), strict=True)) if steps else {},
        labels={name: _counts(question.meta.get(name) for question in inputs) for name in names},
        ctx={"lambda": context.lambda_, "shrinkage": context.shrinkage, "max_structures": context.max_structures},
    )


def _counts(values: Iterator[str | None]) -> dict[str, int]:
    """How often each value occurs, the most frequent first."""
    found = Counter(value for value in values if value is not None)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MAX_LABEL_VALUES])


def _arm(arm: ArmStatistics) -> str:
    return record(
        TEXT_CHARS,
        direction=arm.direction,
        pulls=arm.pulls,
        value=round(arm.value, DECIMALS),
        bonus=round(arm.bonus, DECIMALS),
        ucb=round(arm.ucb, DECIMALS),
        invalid=arm.invalid,
        repeats=arm.duplicates,
    )


def _entry(entry: ArchiveEntry) -> str:
    return record(
        TEXT_CHARS,
        id=entry.id,
        direction=entry.direction,
        parents=entry.parents,
        hypothesis=entry.hypothesis,
        validation=_worth(entry.validation),
        train=_worth(entry.train),
        unused=entry.off_direction,
    )


def _worth(evaluation: Evaluation) -> dict[str, float]:
    return {
        "objective": round(evaluation.objective, DECIMALS),
        "score": round(evaluation.score, DECIMALS),
        "tokens": round(evaluation.tokens),
        "structures": round(evaluation.structures, 2),
    }


def _source(entry: ArchiveEntry, chars: int) -> str:
    """The code under a line that says what it is and what it is worth."""
    objectives = (
        f"objective {entry.validation.objective:.{DECIMALS}f} on validation, {entry.train.objective:.{DECIMALS}f} on train"
    )
    return f"# {entry.id}: {objectives}\n{cleaned(entry.source.strip(), chars)}"


def _card(card: FailureCard) -> str:
    return record(
        CARD_TEXT_CHARS,
        where=card.description,
        expression=card.predicate.expression,
        questions=card.questions,
        episodes=card.episodes,
        gain=round(card.gain, DECIMALS),
        error=round(card.gain_error, DECIMALS),
        beyond_luck=card.beyond_luck,
        better_subset=subsets.label(card.better_subset),
        missing=[_effect(effect) for effect in card.missing],
        harmful=[_effect(effect) for effect in card.harmful],
        examples=card.examples,
    )


def _effect(effect: Effect) -> dict[str, Any]:
    return {"structure": effect.structure, "gain": round(effect.gain, DECIMALS), "questions": effect.questions}


def _rejection(rejection: Rejection) -> str:
    return record(TEXT_CHARS, id=rejection.id, reason=rejection.reason, repeats=rejection.duplicate_of)
