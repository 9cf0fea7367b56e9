"""What candidates are fitted to and compared on, prepared once for a whole search."""

import random
from dataclasses import dataclass
from typing import Self

import numpy as np

from mesa_pipeline.evaluation.evaluate import Evaluation, evaluate_choices, fully_scored
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies.base import FitContext, PolicyInput, policy_inputs
from mesa_pipeline.policies.executable import Encoded, encode_questions, encode_rows
from mesa_pipeline.search.store import Choices

ODD_TEXTS = (
    "",
    " \n\t ",
    "?" * 5000,
    "What happened at step 999999999999 and between steps -3 and 4?",
    "\x00\x07\x1b[31m",
    "\ud800 half a pair",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u4f60\u597d",
    "{question!r} %s %(x)d {0.__class__} \\",
    "0" * 400,
    "a" * 100_000,
)
UNKNOWN_LABELS = {"domain": "\u2603", "task_type": "", "qa_type": "nobody has seen this"}


@dataclass(frozen=True)
class SearchData:
    """The two splits a search may see, as tables and as the JSON that policies are given.

    Attributes:
        train: Outcomes that ``fit`` and the proposers learn from.
        validation: Outcomes that candidates are compared on, all of them fully scored.
        context: What fitting may depend on beside the training outcomes.
        rows: The training rows.
        questions: Training, validation and odd questions, in that order.
        shuffled: The same in another order.
        order: Shape ``(n,)``: place in ``questions`` of each question of ``shuffled``.
    """

    train: OutcomeMatrix
    validation: OutcomeMatrix
    context: FitContext
    rows: Encoded
    questions: Encoded
    shuffled: Encoded
    order: np.ndarray

    @classmethod
    def of(cls, train: OutcomeMatrix, validation: OutcomeMatrix, context: FitContext) -> Self:
        """Prepare the splits.

        Validation questions lacking the score of some subset are left out, for every candidate alike: otherwise one would gain
        from failing on hard questions.

        Raises:
            ArtifactError: A cell was never swept, or no question has the scores needed.
        """
        comparable = fully_scored(validation)
        known = [*policy_inputs(train, context.labels), *policy_inputs(comparable, context.labels)]
        asked = [*known, *odd_questions(known)]
        order = list(range(len(asked)))
        random.Random(context.seed).shuffle(order)
        return cls(
            train=train,
            validation=comparable,
            context=context,
            rows=encode_rows(train, context),
            questions=encode_questions(asked),
            shuffled=encode_questions([asked[k] for k in order]),
            order=np.array(order),
        )

    def choices(self, masks: np.ndarray) -> Choices:
        """The masks of train and validation questions out of those of ``questions``."""
        first, last = len(self.train), len(self.train) + len(self.validation)
        return Choices(masks[:first], masks[first:last])

    def worth(self, name: str, choices: Choices) -> "Worth":
        """What choices are worth on each split.

        Raises:
            ArtifactError: No training question has a score under what is chosen for it.
        """
        lambda_ = self.context.lambda_
        return Worth(
            train=evaluate_choices(name, "executable", self.train, choices.train, lambda_),
            validation=evaluate_choices(name, "executable", self.validation, choices.validation, lambda_),
        )


@dataclass(frozen=True)
class Worth:
    """What a policy is worth on train and on validation."""

    train: Evaluation
    validation: Evaluation


def odd_questions(known: list[PolicyInput]) -> list[PolicyInput]:
    """Questions no benchmark asks, which a policy must answer all the same.

    Odd texts without labels, with unknown labels, and with the labels and previews of a known question; and a known question
    with nothing, or with half of the previews, known beside it.
    """
    sample = known[0]
    return [
        *(PolicyInput(text, {}, 0) for text in ODD_TEXTS),
        *(PolicyInput(text, UNKNOWN_LABELS, 10**9) for text in ODD_TEXTS[:4]),
        *(PolicyInput(text, sample.meta, sample.steps, sample.previews) for text in ODD_TEXTS[:4]),
        PolicyInput(sample.question, {}, sample.steps),
        PolicyInput(sample.question, sample.meta, 1, dict(list(sample.previews.items())[:2])),
    ]
