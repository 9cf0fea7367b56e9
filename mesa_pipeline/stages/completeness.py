"""Whether a stage that works seed by seed is done for all of them, with the settings as they are. Nothing is made."""

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import is_optimized
from mesa_pipeline.stages.split import read_split
from mesa_pipeline.stages.test import is_tested


def are_split(context: StageContext) -> bool:
    """Whether the split of every seed is drawn."""
    try:
        return all(read_split(context, seed) for seed in context.settings.splits.seeds)
    except ArtifactError:
        return False


def are_optimized(context: StageContext) -> bool:
    """Whether the policy of every seed is frozen."""
    return all(is_optimized(context, seed) for seed in context.settings.splits.seeds)


def are_tested(context: StageContext) -> bool:
    """Whether the policy of every seed, as it is frozen now, is tested."""
    return all(is_tested(context, seed) for seed in context.settings.splits.seeds)
