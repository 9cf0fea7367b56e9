"""A household robot: objects wander between places, get washed, heated and chilled; cupboards belong to people and rooms."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mesa_pipeline.datasets.synthetic.environments.household_wording import WORDING
from mesa_pipeline.datasets.synthetic.events import (
    Change,
    Event,
    Failure,
    GoalFinished,
    GoalStarted,
    Reading,
    Refusal,
    Relation,
    Remedy,
    Turn,
)
from mesa_pipeline.datasets.synthetic.names import unique_names
from mesa_pipeline.datasets.synthetic.world import World

COLOURS = ("blue", "striped", "green", "chipped", "tall", "tiny", "spotted", "ivory", "orange", "worn")
OBJECTS = ("mug", "towel", "plate", "bowl", "apron", "candle", "spoon", "jar", "cloth", "pan", "book")
FURNITURE = ("cabinet", "drawer", "shelf", "sideboard", "basket", "counter", "trunk")
ROOMS = ("kitchen", "pantry", "hallway", "bathroom", "study", "nursery", "laundry room")
PEOPLE = ("Alma", "Bertil", "Carmen", "Dov", "Elif", "Frans", "Gia")
TREATMENTS = {"wash": ("sink", "clean"), "heat": ("oven", "hot"), "chill": ("fridge", "cold"), "dry": ("rack", "dry")}
SLIPS = ("gripper slipped", "arm out of reach", "object not recognised", "path blocked by chair", "torque limit")
OUTAGES = {
    "its fuse has blown": "replace the fuse",
    "a toddler stuck the lid with glue": "scrape off the glue",
    "the water main was shut": "open the water main",
    "the filter is clogged with lint": "rinse the filter",
}
MOST_OBJECTS = 8


@dataclass
class Thing:
    """A movable object."""

    name: str
    place: str
    owner: str


class Household(World):
    """A home where chores never end and new objects keep turning up."""

    def __init__(self, rng: Random, task_type: str) -> None:
        super().__init__(rng, "FAULT-", WORDING.topics)
        self._treatments = ("wash", "dry") if task_type == "tidy_up" else ("heat", "chill", "wash")
        self.task = "You are a household robot. Do the chores on the board: " + (
            "put everything clean in its place." if task_type == "tidy_up" else "prepare what the cook asks for."
        )
        self._names = unique_names(rng, "{} {}{n}", COLOURS, OBJECTS)
        places = unique_names(rng, "{} {}{n}", FURNITURE, "12")
        self._rooms = {next(places): self.pick(ROOMS) for _ in range(9)}
        self._things: list[Thing] = []
        self._battery = 100
        for _ in range(5):
            self._add_thing()

    def play(self) -> Iterator[Turn]:
        chore = 0
        yield self._morning_round()
        while True:
            chore += 1
            thing = self.pick(self._things)
            treatment = self.pick(self._treatments)
            target = self.pick([place for place in self._rooms if place != thing.place])
            goal = f"{treatment} the {thing.name} and put it into {target} (chore {chore})"
            yield self.turn("read the board", f"The board says: {goal}.", GoalStarted(goal))
            device, _ = TREATMENTS[treatment]
            cause = self.announce("Note on the door about the {entity}: {cause}.", device, tuple(OUTAGES), 0.4)
            yield from self._wander()
            yield from self._find(thing)
            yield from self._treat(thing, treatment, cause)
            yield from self._put(thing, target, goal)
            if self.chance(0.5):
                yield self._delivery()

    def chatter(self) -> str:
        return self.pick(
            (
                f"[lidar] {self.rng.randint(90, 720)} returns, nearest obstacle {self.rng.uniform(0.2, 4):.2f} m",
                f"[joint 4] {self.rng.uniform(-90, 90):.1f} deg, {self.rng.randint(20, 60)} C",
                f"[audio] speech detected, {self.pick(PEOPLE)}, confidence {self.rng.random():.2f}",
                f"[vision] template of {self.pick(self._things).name} reloaded, {self.rng.randint(3, 40)} features",
                f"[nav] replanned in {self.rng.randint(3, 90)} ms",
            )
        )

    def _add_thing(self) -> Thing:
        thing = Thing(next(self._names), self.pick(tuple(self._rooms)), self.pick(PEOPLE))
        self._things.append(thing)
        return thing

    def _morning_round(self) -> Turn:
        seen = self.rng.sample(self._things, 3)
        text = " ".join(f"The {thing.name} is in {thing.place}." for thing in seen)
        return self.turn("make a round", text, *(Change(thing.name, "location", thing.place) for thing in seen))

    def _wander(self) -> Iterator[Turn]:
        for _ in range(self.rng.randint(1, 3)):
            yield self._look_around() if self.chance(0.6) else self._check_battery()
        if self.chance(0.3):
            first, second = self.rng.sample(sorted(self._rooms), 2)
            for _ in range(self.rng.randint(2, 3)):
                yield self.turn(f"go to {first}", f"You are facing {first}. Nothing useful here.")
                yield self.turn(f"go to {second}", f"You are facing {second}. Nothing useful here.")

    def _look_around(self) -> Turn:
        """Where some piece of furniture stands and whose things lie about."""
        self.gossip(0.4)
        place = self.pick(sorted(self._rooms))
        room = self._rooms[place]
        thing = self.pick(self._things)
        text = f"A tag says that {place} stands in the {room}. The {thing.name} belongs to {thing.owner}."
        facts = (Relation(place, "stands_in", room), Relation(thing.name, "belongs_to", thing.owner))
        return self.turn(f"examine {place}", text, *facts)

    def _check_battery(self) -> Turn:
        self.gossip(0.4)
        self._battery = self._battery - self.rng.randint(1, 7) if self._battery > 15 else 100
        level = f"{self._battery}% charge"
        return self.turn("check battery", f"Battery at {level}.", Reading(level))

    def _find(self, thing: Thing) -> Iterator[Turn]:
        yield self._approach(thing.place)
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            reason, fault = self.pick(SLIPS), self.identifier()
            text = f"Nothing happens: {reason}. Logged as {fault}."
            yield self.turn(f"take the {thing.name} from {thing.place}", text, Failure(thing.name, reason, fault))
            yield self._check_battery()
        text = f"You pick up the {thing.name} from {thing.place}. It is in your gripper."
        yield self.turn(f"take the {thing.name} from {thing.place}", text, Change(thing.name, "location", "in your gripper"))
        thing.place = "in your gripper"

    def _approach(self, place: str) -> Turn:
        things = [thing.name for thing in self._things if thing.place == place]
        listing = ", ".join(f"a {name}" for name in things)
        locations = (Change(name, "location", place) for name in things)
        return self.turn(f"go to {place}", f"You arrive at {place}. On it you see {listing}.", *locations)

    def _treat(self, thing: Thing, treatment: str, cause: str) -> Iterator[Turn]:
        device, state = TREATMENTS[treatment]
        if cause:
            yield self._check_battery()
            text = f"The {device} does not respond."
            yield self.turn(f"{treatment} the {thing.name} with the {device}", text, Refusal(device))
            yield self._check_battery()
            yield self.turn(f"{OUTAGES[cause]} of the {device}", "Done.", Remedy(device))
        text = f"You {treatment} the {thing.name} using the {device}. It is {state} now."
        yield self.turn(f"{treatment} the {thing.name} with the {device}", text, Change(thing.name, "condition", state))

    def _put(self, thing: Thing, target: str, goal: str) -> Iterator[Turn]:
        thing.place = target
        text = f"You put the {thing.name} into {target}. The board crosses out: {goal}."
        events = (Change(thing.name, "location", target), GoalFinished(goal))
        yield self.turn(f"put the {thing.name} into {target}", text, *events)
        if self.chance(0.35):
            other = self.pick(self._things)
            other.place = self.pick(sorted(self._rooms))
            mover = self.pick(PEOPLE)
            note = f"{mover} walks by and moves the {other.name} to {other.place}."
            self.interject(note, Change(other.name, "location", other.place))
            yield self._check_battery()

    def _delivery(self) -> Turn:
        """A new object arrives; the oldest is given away once there are many."""
        given = self._things.pop(0) if len(self._things) >= MOST_OBJECTS else None
        thing = self._add_thing()
        text = f"A parcel: the {thing.name}, now on {thing.place}, belongs to {thing.owner}."
        events: list[Event] = [
            Change(thing.name, "location", thing.place),
            Relation(thing.name, "belongs_to", thing.owner),
        ]
        if given:
            text += f" The {given.name} is given away."
            events.append(Change(given.name, "location", "given away"))
        return self.turn("open the front door", text, *events)
