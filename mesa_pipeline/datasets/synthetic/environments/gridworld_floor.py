"""The floors of the grid world: trees of rooms whose doors need keys that lie on the near side of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from mesa_pipeline.datasets.synthetic.names import unique_names

OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
ROOM_ADJECTIVES = ("Amber", "Hollow", "Sunken", "Gilded", "Silent", "Crooked", "Frozen", "Mossy", "Scarlet", "Dusty", "Vaulted")
ROOM_NOUNS = ("Hall", "Gallery", "Cellar", "Chapel", "Library", "Armoury", "Pantry", "Crypt", "Observatory", "Workshop")
DOOR_ADJECTIVES = ("rusty", "carved", "narrow", "barred", "painted", "warped", "studded", "low")
MATERIALS = ("iron", "oak", "bronze", "slate", "ivory", "copper")
KEY_ADJECTIVES = ("notched", "slender", "heavy", "bent", "toothed", "polished", "tarnished", "hollow")
METALS = ("brass", "silver", "tin", "pewter", "nickel", "gold")
TREASURES = ("idol", "chalice", "mask", "crown", "mirror", "lute")
GEMS = ("jade", "onyx", "opal", "garnet", "pearl", "topaz", "amethyst")
LOCKED_SHARE = 0.7
MOST_EXITS = 3


@dataclass
class Room:
    """A room; ``door`` leads in from room ``parent``, going in ``direction``. Without a ``key`` the door has no lock."""

    name: str
    parent: int
    door: str = ""
    direction: str = ""
    key: str = ""
    unlocked: bool = True
    exits: dict[str, int] = field(default_factory=dict)


@dataclass
class Floor:
    """Rooms by index, room 0 being the entrance and the last one holding the treasure; ``places`` says where things lie."""

    rooms: list[Room]
    treasure: str
    places: dict[str, int]

    @property
    def treasure_room(self) -> int:
        return len(self.rooms) - 1

    def path_down(self, room: int) -> list[int]:
        """Rooms to pass from the entrance, which is left out, to ``room``, which is included."""
        path: list[int] = []
        while room:
            path.append(room)
            room = self.rooms[room].parent
        return path[::-1]


class FloorPlans:
    """An endless supply of floors, none of whose names repeat."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._rooms = unique_names(rng, "{} {}{n}", ROOM_ADJECTIVES, ROOM_NOUNS)
        self._doors = unique_names(rng, "{} {} door{n}", DOOR_ADJECTIVES, MATERIALS)
        self._keys = unique_names(rng, "{} {} key{n}", KEY_ADJECTIVES, METALS)
        self._treasures = unique_names(rng, "{} {}{n}", GEMS, TREASURES)

    def __iter__(self) -> Iterator[Floor]:
        while True:
            yield self._draw()

    def _draw(self) -> Floor:
        rooms = [Room(next(self._rooms), parent=0)]
        for index in range(1, self._rng.randint(4, 7)):
            rooms.append(self._add_room(rooms, index))
        floor = Floor(rooms, next(self._treasures), {})
        floor.places[floor.treasure] = floor.treasure_room
        for index, room in enumerate(rooms):
            if room.key:
                floor.places[room.key] = self._rng.choice([0, *floor.path_down(index)[:-1]])
        return floor

    def _add_room(self, rooms: list[Room], index: int) -> Room:
        parent = self._rng.choice([room for room in range(index) if len(rooms[room].exits) < MOST_EXITS])
        taken = {*rooms[parent].exits, OPPOSITE.get(rooms[parent].direction, "")}
        direction = self._rng.choice([way for way in OPPOSITE if way not in taken])
        key = next(self._keys) if index == 1 or self._rng.random() < LOCKED_SHARE else ""
        rooms[parent].exits[direction] = index
        return Room(next(self._rooms), parent, next(self._doors), direction, key, unlocked=not key)
