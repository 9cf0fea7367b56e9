"""Choosing the policy to freeze among those that need no search: fit on train, compare on validation."""

from collections.abc import Callable
from dataclasses import dataclass

from mesa_pipeline.config import Settings
from mesa_pipeline.evaluation.evaluate import Evaluation, evaluate_policy, fully_scored
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.policies import FitContext, FittedPolicy, Policy, baseline_policies

OBJECTIVE_DIGITS = 12
"""Objectives are compared to this many decimals: summation order must not decide between policies."""


@dataclass(frozen=True)
class Candidate:
    """A fitted policy with what it is worth on the questions it was fitted to and on those it is compared on."""

    fitted: FittedPolicy
    train: Evaluation
    validation: Evaluation

    @property
    def name(self) -> str:
        return self.fitted.name


@dataclass(frozen=True)
class Selection:
    """The archive of candidates, the first of which reads all structures, and the one chosen.

    Attributes:
        candidates: In the order they were evaluated.
        chosen: The one to freeze.
        left_out: Validation questions left out because some subset is unscored on them.
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    left_out: int


def candidates(settings: Settings) -> list[Policy]:
    """The policies to choose among, "all" first."""
    return baseline_policies(settings.policies)


def select_policy(
    train: OutcomeMatrix,
    validation: OutcomeMatrix,
    settings: Settings,
    seed: int = 0,
    on_candidate: Callable[[Candidate], None] | None = None,
) -> Selection:
    """Fit every candidate on train and choose the one with the highest J - lambda C on validation.

    Ties go to fewer tokens, then to the first name. Candidates are compared on the validation questions scored under all 31
    subsets, the same for each of them: otherwise one would gain from failing on hard questions.

    Args:
        train: Outcomes to fit to.
        validation: Outcomes to compare on; they change no fitted state.
        settings: Token price, shrinkage and the lookups to try.
        seed: Seed of any random draw in fitting.
        on_candidate: Called with each candidate once it is evaluated, in order.

    Raises:
        ArtifactError: A cell was never swept, or no question has the scores needed.
    """
    context, lambda_ = FitContext.of(settings, seed), settings.search.lambda_
    comparable = fully_scored(validation)
    archive: list[Candidate] = []
    for policy in candidates(settings):
        fitted = policy.fitted(train, context)
        candidate = Candidate(fitted, evaluate_policy(fitted, train, lambda_), evaluate_policy(fitted, comparable, lambda_))
        archive.append(candidate)
        if on_candidate is not None:
            on_candidate(candidate)
    return Selection(tuple(archive), best_candidate(archive), len(validation) - len(comparable))


def best_candidate(archive: list[Candidate]) -> Candidate:
    """The candidate with the highest validation objective; ties go to fewer tokens, then to the first name."""

    def preference(candidate: Candidate) -> tuple[float, float, str]:
        return (-round(candidate.validation.objective, OBJECTIVE_DIGITS), candidate.validation.tokens, candidate.name)

    return min(archive, key=preference)
