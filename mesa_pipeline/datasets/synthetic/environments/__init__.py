"""The simulated environments. To add one: a world, its wording, and a line in ``ENVIRONMENTS``."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from mesa_pipeline.datasets.synthetic.environments import gridworld, gridworld_wording
from mesa_pipeline.datasets.synthetic.wording import Wording
from mesa_pipeline.datasets.synthetic.world import World


@dataclass(frozen=True, slots=True)
class Environment:
    """A kind of world.

    Attributes:
        domain: Domain of its episodes.
        task_types: Task types, taken in turn.
        create: Makes a fresh world from a generator and a task type.
        wording: Words for its questions.
    """

    domain: str
    task_types: tuple[str, ...]
    create: Callable[[Random, str], World]
    wording: Wording


ENVIRONMENTS = (Environment("game", ("key_door", "treasure_hunt"), gridworld.Gridworld, gridworld_wording.WORDING),)
