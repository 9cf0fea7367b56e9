"""The simulated environments. To add one: a world, its wording, and a line in ``ENVIRONMENTS``."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from mesa_pipeline.datasets.synthetic.environments import (
    database_wording,
    gridworld_wording,
    household_wording,
    operations_wording,
    shop_wording,
    software_wording,
)
from mesa_pipeline.datasets.synthetic.environments.database import SqlConsole
from mesa_pipeline.datasets.synthetic.environments.gridworld import Gridworld
from mesa_pipeline.datasets.synthetic.environments.household import Household
from mesa_pipeline.datasets.synthetic.environments.operations import Fleet
from mesa_pipeline.datasets.synthetic.environments.shop import Shop
from mesa_pipeline.datasets.synthetic.environments.software import Repository
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


ENVIRONMENTS = (
    Environment("software", ("bug_fix", "refactoring"), Repository, software_wording.WORDING),
    Environment("game", ("key_door", "treasure_hunt"), Gridworld, gridworld_wording.WORDING),
    Environment("web", ("purchase", "returns_desk"), Shop, shop_wording.WORDING),
    Environment("database", ("report", "cleanup"), SqlConsole, database_wording.WORDING),
    Environment("operations", ("deployment", "incident_response"), Fleet, operations_wording.WORDING),
    Environment("embodied", ("tidy_up", "cooking"), Household, household_wording.WORDING),
)
