"""What each template policy is worth on test episodes with its default genes, without any search.

Usage: python benchmarks/template_policies.py --workspace DIR [--dataset NAME] [--no-labels] [--templates NAME ...]

Difference to reading all five, in points, and share of its evidence tokens, over the split seeds of the settings: fitted on the
training episodes alone, and on training and validation episodes. Interval: paired bootstrap over episodes, all seeds pooled.
The workspace must have been swept, and have previews.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.evaluate import outcomes_of
from mesa_pipeline.evaluation.statistics import paired_bootstrap
from mesa_pipeline.policies.base import FitContext, policy_inputs
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.proposers.templates import TEMPLATES, render
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.table import read_table
from mesa_pipeline.subsets import FULL_SUBSET


@dataclass(frozen=True)
class Comparison:
    """One policy on one test split beside reading all: arrays of shape ``(n,)``; ``gains`` are differences of scores."""

    gains: np.ndarray
    tokens: np.ndarray
    all_tokens: np.ndarray
    episodes: np.ndarray


def compare(context: StageContext, template: str, seed: int, labels: bool, fitted_on: Sequence[str]) -> Comparison:
    """Fit a template's default on some parts of a split and compare it on the test part."""
    settings = context.settings
    split = read_split(context, seed)
    train = read_table(context, [id for part in fitted_on for id in getattr(split, part)]).matrix
    test = read_table(context, split.test).matrix
    fit = FitContext(settings.search.lambda_, settings.policies.shrinkage, seed, settings.search.max_structures, labels)
    known = TEMPLATES[template]
    source = render(known.default(labels), known.directions[0], known.hypothesis, [])
    policy = ExecutablePolicy(template, source, open_sandbox(settings.policies.sandbox))
    masks = policy.select_many(policy.fit(train, fit), policy_inputs(test, labels))
    own = outcomes_of(test, np.array(masks), template)
    everything = outcomes_of(test, np.full(len(test), FULL_SUBSET), "all")
    return Comparison(own.scores - everything.scores, own.tokens, everything.tokens, test.episode_ids)


def line(context: StageContext, template: str, labels: bool, fitted_on: Sequence[str]) -> str:
    """Difference, interval and share of tokens over all seeds."""
    settings = context.settings
    made = [compare(context, template, seed, labels, fitted_on) for seed in settings.splits.seeds]
    gains, episodes = np.concatenate([c.gains for c in made]), np.concatenate([c.episodes for c in made])
    evaluation = settings.evaluation
    interval = paired_bootstrap(gains, episodes, evaluation.bootstrap_samples, evaluation.confidence, evaluation.bootstrap_seed)
    share = np.concatenate([c.tokens for c in made]).sum() / np.concatenate([c.all_tokens for c in made]).sum()
    return f"{100 * interval.mean:+.2f} [{100 * interval.low:+.2f}, {100 * interval.high:+.2f}] {100 * share:3.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--dataset", default="ama_bench")
    parser.add_argument("--no-labels", action="store_true")
    parser.add_argument("--templates", nargs="*", default=list(TEMPLATES))
    options = parser.parse_args()
    context = StageContext(Layout(options.workspace, options.dataset), load_settings())
    print(f"{'template':26}{'train':32}train and validation")
    for template in options.templates:
        fits = [line(context, template, not options.no_labels, parts) for parts in (("train",), ("train", "val"))]
        print(f"{template:26}{fits[0]:32}{fits[1]}")


if __name__ == "__main__":
    main()
