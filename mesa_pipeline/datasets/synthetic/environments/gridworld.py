"""A key-door grid world: floors of rooms joined by locked doors, an idol to be carried to the altar of each floor."""

from collections.abc import Iterator
from itertools import count
from random import Random

from mesa_pipeline.datasets.synthetic.environments.gridworld_floor import METALS, OPPOSITE, FloorPlans, Room
from mesa_pipeline.datasets.synthetic.environments.gridworld_wording import WORDING
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
from mesa_pipeline.datasets.synthetic.world import World

HERO = "the explorer"
CLOGS = ("an imp has poured wax", "a tinker has stuffed rags", "a gremlin has tipped honey", "the smith has run hot tin")
SCENERY = (
    "Torchlight flickers over cracked flagstones.",
    "A draught smells of wet stone and old smoke.",
    "Cobwebs hang from the rafters like curtains.",
    "Somewhere above, boards creak under no visible weight.",
    "The floor is strewn with gravel and bones of small animals.",
)


class Gridworld(World):
    """Floors are trees of rooms; the agent knows no more than what it has read."""

    def __init__(self, rng: Random, task_type: str) -> None:
        super().__init__(rng, "RUNE-", WORDING.topics)
        self.task = (
            "You explore a dungeon of locked rooms, floor by floor. Find the treasure of each floor, open the doors in its way "
            "and place it on the altar. "
            + ("Every door needs its own key." if task_type == "key_door" else "Gather as many treasures as you can.")
        )
        self._hasty = 0.35 if task_type == "key_door" else 0.2
        self._floors = iter(FloorPlans(rng))
        self._floor = next(self._floors)
        self._here = 0
        self._oil = 100

    def play(self) -> Iterator[Turn]:
        for number in count(1):
            treasure = self._floor.treasure
            goal = f"bring the {treasure} to the altar of floor {number}"
            yield self._arrive(number, goal)
            yield self._study(treasure)
            for room in self._floor.path_down(self._floor.treasure_room):
                yield from self._enter(room)
            yield from self._carry(treasure, goal)
            self._floor, self._here = next(self._floors), 0

    def chatter(self) -> str:
        return self.pick(
            (
                *SCENERY,
                f"A {self.pick(METALS)} coin glints in a crack, out of reach.",
                f"You count {self.rng.randint(3, 40)} tiles along the {self.pick(tuple(OPPOSITE))} side.",
                f"An echo repeats your steps {self.rng.randint(2, 9)} times.",
                f"You are reminded of the {self.pick(self._floor.rooms[1:]).door}; {self.rng.randint(2, 9)} rivets, you think.",
                f"[turn timer {self.rng.randint(100, 999)}] hunger {self.rng.randint(0, 9)}, thirst {self.rng.randint(0, 9)}",
            )
        )

    def _arrive(self, floor: int, goal: str) -> Turn:
        room = self._floor.rooms[0]
        text = f"You come up the stairs to floor {floor} and stand in {room.name}. Your task here: {goal}."
        return self.turn("climb the stairs", text, GoalStarted(goal), Change(HERO, "position", room.name))

    def _study(self, treasure: str) -> Turn:
        last = self._floor.rooms[-1]
        hint = f"The mural says that the {treasure} is kept in {last.name}."
        return self.turn(
            "study the mural", hint, Relation(treasure, "kept_in", last.name), Change(treasure, "location", last.name)
        )

    def _enter(self, index: int) -> Iterator[Turn]:
        """Get through the door of a room whose parent has been reached."""
        room = self._floor.rooms[index]
        whisper = "You overhear a whisper: {cause} into the {entity}."
        cause = "" if room.unlocked else self.announce(whisper, room.door, CLOGS, 0.4)
        yield from self._walk(room.parent)
        yield self._inspect(index)
        if self.chance(0.4):
            yield self._rest()
        if not room.unlocked:
            if self.chance(self._hasty):
                yield from self._try_wrong(room)
            yield from self._fetch(room.key)
            yield from self._walk(room.parent)
            yield from self._unlock(room, cause)
        yield from self._walk(index)
        if self.chance(0.25):
            yield from self._pace()

    def _inspect(self, index: int) -> Turn:
        """Look at a door: its plate names the key, its grating shows the room beyond."""
        room = self._floor.rooms[index]
        beyond = f"The {room.door} leads into {room.name}."
        if room.unlocked:
            text = f"The {room.door} ({room.direction}) has no lock. {beyond}"
            return self.turn(f"examine the {room.door}", text, Relation(room.name, "entered_by", room.door))
        text = f"The {room.door} ({room.direction}) is locked. The {room.key} opens the {room.door}. {beyond}"
        events = (
            Relation(room.door, "opened_by", room.key),
            Relation(room.name, "entered_by", room.door),
            Change(room.door, "state", "locked"),
        )
        return self.turn(f"examine the {room.door}", text, *events)

    def _try_wrong(self, room: Room) -> Iterator[Turn]:
        for _ in range(self.rng.randint(1, 2)):
            reason, text = self.pick(
                (
                    ("bare hands slipped", "Your bare hands slipped off the handle"),
                    ("shoulder bounced off", "Your shoulder bounced off the planks"),
                    ("pick snapped", "The pick snapped in the lock"),
                )
            )
            rune = self.identifier()
            yield self.turn(f"force the {room.door}", f"{text}. A glyph flares up: {rune}.", Failure(room.door, reason, rune))
            yield self._rest()

    def _fetch(self, key: str) -> Iterator[Turn]:
        place = self._floor.places[key]
        yield from self._walk(place)
        yield self._look(Relation(key, "found_in", self._floor.rooms[place].name))
        yield self.turn(
            f"take the {key}",
            f"Taken. The {key} is now in your pack.",
            Change(key, "location", "in your pack"),
        )
        del self._floor.places[key]

    def _unlock(self, room: Room, cause: str) -> Iterator[Turn]:
        if cause:
            yield self.turn(
                f"unlock the {room.door} with the {room.key}", f"The {room.key} goes in but will not turn.", Refusal(room.door)
            )
            yield self._rest()
            tool = self.pick(("a hot poker", "a goose feather", "lamp oil", "a bent wire"))
            yield self.turn(
                f"clean the lock of the {room.door} with {tool}", "Bit by bit the lock comes free.", Remedy(room.door)
            )
        room.unlocked = True
        yield self.turn(
            f"unlock the {room.door} with the {room.key}",
            f"Click. The {room.door} is unlocked.",
            Change(room.door, "state", "unlocked"),
        )
        if self.chance(0.5):
            yield self._drop(room.key)

    def _drop(self, thing: str) -> Turn:
        self._floor.places[thing] = self._here
        name = self._floor.rooms[self._here].name
        text = f"Dropped: the {thing} now lies in {name}."
        return self.turn(f"drop the {thing}", text, Change(thing, "location", name))

    def _walk(self, target: int) -> Iterator[Turn]:
        """Go room by room through open doors: up to the common ancestor, then down."""
        while self._here != target:
            below = self._floor.path_down(target)
            ahead = [room for room in below if self._floor.rooms[room].parent == self._here]
            if self._here == 0 or self._here in below:
                yield self._move(ahead[0], self._floor.rooms[ahead[0]].direction)
            else:
                room = self._floor.rooms[self._here]
                yield self._move(room.parent, OPPOSITE[room.direction])
            if self.chance(0.15):
                yield self._bump()

    def _move(self, target: int, direction: str) -> Turn:
        self._here = target
        name = self._floor.rooms[target].name
        self.gossip(0.2)
        text = f"You walk {direction} into {name}." + (f" {self.pick(SCENERY)}" if self.chance(0.5) else "")
        return self.turn(f"go {direction}", text, Change(HERO, "position", name))

    def _bump(self) -> Turn:
        room = self._floor.rooms[self._here]
        walls = [way for way in OPPOSITE if way not in room.exits and way != OPPOSITE.get(room.direction)]
        if not walls:
            return self._rest()
        rune = self.identifier()
        return self.turn(
            f"go {self.pick(walls)}", f"There is a solid wall. A glyph flares up: {rune}.", Failure(HERO, "solid wall", rune)
        )

    def _rest(self) -> Turn:
        self.gossip(0.3)
        if self.chance(0.6):
            self._oil = self._oil - self.rng.randint(1, 6) if self._oil > 10 else 100
            level = f"{self._oil}% oil"
            return self.turn("check lantern", f"The lantern holds {level}.", Reading(level))
        if self.chance(0.4):
            return self.turn("inventory", "You rummage through your pack. " + self.pick(SCENERY))
        return self._look()

    def _pace(self) -> Iterator[Turn]:
        """Walk to and fro without a plan."""
        room = self._floor.rooms[self._here]
        open_exits = [index for index in room.exits.values() if self._floor.rooms[index].unlocked]
        if open_exits:
            target = self.pick(open_exits)
            way = self._floor.rooms[target].direction
            back = self._here
            for _ in range(self.rng.randint(2, 3)):
                yield self._move(target, way)
                yield self._move(back, OPPOSITE[way])

    def _carry(self, treasure: str, goal: str) -> Iterator[Turn]:
        yield self.turn(
            f"take the {treasure}",
            f"You lift the {treasure}; it is now in your pack.",
            Change(treasure, "location", "in your pack"),
        )
        del self._floor.places[treasure]
        yield from self._walk(0)
        yield self.turn(
            f"place the {treasure} on the altar",
            f"The {treasure} rests on the altar and the ceiling stairs grind open. Done: {goal}.",
            Change(treasure, "location", "the altar"),
            GoalFinished(goal),
        )

    def _look(self, *events: Event) -> Turn:
        room = self._floor.rooms[self._here]
        ways = [f"{way} ({self._floor.rooms[index].door})" for way, index in room.exits.items()]
        things = [thing for thing, place in self._floor.places.items() if place == self._here]
        lines = [f"{room.name}. {self.pick(SCENERY)}", f"Exits: {', '.join(ways) or 'only the way you came'}."]
        text = "\n".join([*lines, *(f"On the floor lies the {thing}." for thing in things)])
        return self.turn("look", text, *events, *(Change(thing, "location", room.name) for thing in things))
