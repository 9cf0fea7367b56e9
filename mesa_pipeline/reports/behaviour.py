"""What a policy does, said of groups of questions that anyone can tell apart: a fitted program explained by what it chooses."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.evaluation.observables import LABELS, QUESTION_FORMS, Features, observable_features
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.reports import text
from mesa_pipeline.reports.document import Cell, Column, Row, Table
from mesa_pipeline.reports.tables import subset_cell

FEWEST_QUESTIONS = 10
MAX_LABEL_GROUPS = 12
SHOWN_LABELS = ("domain", "qa_type")


@dataclass(frozen=True)
class _Group:
    kind: str
    name: str
    rows: np.ndarray


def behaviour_table(test: TestResult, matrix: OutcomeMatrix) -> Table | None:
    """What the frozen policy reads, by label and by what the question says; ``None`` where no question of the test is known."""
    tested = matrix.select(np.array([question.id in test.choices for question in matrix.questions], dtype=bool))
    if not len(tested):
        return None
    masks = np.array([test.choices[question.id] for question in tested.questions], dtype=np.int64)
    columns = (
        Column("Questions", "left"),
        Column("Number"),
        Column("Most often", "left"),
        Column("Share"),
        *(Column(code, unit="read") for code in subsets.STRUCTURE_CODES),
        Column("Tokens", unit="per question"),
        Column("Of all five"),
    )
    rows = tuple(_row(group, masks, tested) for group in _groups(tested))
    caption = (
        f"Split seed {test.seed}, {text.plural(len(tested), 'test question')}. For each group: the subset chosen most often "
        "with its share, how often each structure is read, and the evidence tokens beside those of reading all five. Groups of "
        f"fewer than {FEWEST_QUESTIONS} questions are left out. The policy need not look at what tells the groups apart."
    )
    return Table("behaviour", "What it reads for which questions", columns, rows, caption)


def _row(group: _Group, masks: np.ndarray, matrix: OutcomeMatrix) -> Row:
    chosen = masks[group.rows]
    counts = Counter(chosen.tolist())
    modal = min(counts, key=lambda mask: (-counts[mask], mask))
    tokens = float(np.nanmean(matrix.tokens[group.rows, chosen - 1]))
    everything = float(np.nanmean(matrix.tokens[group.rows, subsets.FULL_SUBSET - 1]))
    reads = [float(np.mean(chosen & subsets.encode([code]) > 0)) for code in subsets.STRUCTURE_CODES]
    cells = (
        Cell(f"{group.kind}: {text.printable(group.name)}" if group.kind else group.name),
        Cell(text.number(len(chosen)), len(chosen)),
        subset_cell(modal),
        Cell(text.percent(counts[modal] / len(chosen)), counts[modal] / len(chosen)),
        *(Cell(text.percent(share), share) for share in reads),
        Cell(text.number(tokens), tokens),
        Cell(text.percent(tokens / everything) if everything else text.ABSENT, tokens),
    )
    return Row(cells, highlighted=not group.kind)


def _groups(matrix: OutcomeMatrix) -> Sequence[_Group]:
    """All questions, then those of each label, then those of each form, the ones that name a step first."""
    features = [observable_features(question) for question in policy_inputs(matrix, labels=True)]
    groups = [_Group("", "all", np.arange(len(matrix)))]
    for label in SHOWN_LABELS:
        values = Counter(str(found[label]) for found in features if found.get(label))
        shown = sorted(value for value, _ in values.most_common(MAX_LABEL_GROUPS)) if len(values) > 1 else []
        groups += [_Group(LABELS[label], value, _where(features, label, value)) for value in shown]
    named = np.array([bool(found["named_steps"]) for found in features], dtype=bool)
    groups.append(_Group("question", "names a step", np.flatnonzero(named)))
    groups.append(_Group("question", "names no step", np.flatnonzero(~named)))
    groups += [_Group("question", meaning, _where(features, form, True)) for form, (_, meaning) in QUESTION_FORMS.items()]
    return [group for group in groups if len(group.rows) >= FEWEST_QUESTIONS or not group.kind]


def _where(features: Sequence[Features], feature: str, value: str | bool) -> np.ndarray:
    return np.array([row for row, found in enumerate(features) if found.get(feature) == value], dtype=np.int64)
