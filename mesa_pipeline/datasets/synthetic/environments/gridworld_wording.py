"""How questions speak of the grid world."""

from mesa_pipeline.datasets.synthetic.wording import RelationWording, Topic, Wording

WORDING = Wording(
    agent="the explorer",
    attributes={
        "position": "the whereabouts of {entity}",
        "location": "the resting place of the {entity}",
        "state": "the state of the {entity}",
    },
    relations={
        "kept_in": RelationWording(
            ("Where is {entity} kept?", "Which room holds {entity}?"), "the room that holds the {entity}", "treasure"
        ),
        "entered_by": RelationWording(
            ("Through which door does one enter {entity}?", "Which door leads into {entity}?"),
            "the door into {entity}",
            "room",
        ),
        "opened_by": RelationWording(
            ("Which key opens {entity}?", "What is needed to unlock {entity}?"), "the key to the {entity}", "door"
        ),
        "found_in": RelationWording(
            ("In which room was {entity} picked up?", "Where did the explorer find {entity}?"),
            "the room where the {entity} was picked up",
            "key",
        ),
    },
    topics=(
        Topic(
            "ghost",
            "An old warden mutters that the spectre walks on {answer}.",
            ("Which weekday does the phantom go haunting?", "When does the apparition roam, by day of the week?"),
            ("Tuesdays", "Fridays", "Sundays"),
        ),
        Topic(
            "poison",
            "Scratched into the plaster: never drink from the {answer} fountain, it brought me a fever.",
            ("Which water source makes people ill, by colour?",),
            ("crimson", "emerald", "violet"),
        ),
        Topic(
            "merchant",
            "A peddler waves: lamps half price for anyone who hums a {answer}.",
            ("What tune earns a discount from the trader?",),
            ("lullaby", "march", "waltz"),
        ),
        Topic(
            "thief",
            "A torn letter says the burglar hid his loot beneath the {answer}.",
            ("Under what did the robber stash the stolen goods?",),
            ("third stair", "broken anvil", "stone lion"),
        ),
        Topic(
            "builder",
            "A mason's mark reveals these vaults were raised by {answer}.",
            ("Who was the architect that constructed this place?",),
            ("Odo of Lark", "Sister Maud", "the twin masters Hale"),
        ),
        Topic(
            "beast",
            "Claw marks everywhere; the hound is said to fear {answer}.",
            ("What scares the dog?", "What is the canine afraid of?"),
            ("bells", "salt", "mirrors"),
        ),
        Topic(
            "weather",
            "Rain drums overhead; the flood is expected by {answer}.",
            ("At what hour will the place be under water?",),
            ("midnight", "dawn", "noon"),
        ),
        Topic(
            "prize",
            "A herald's notice promises the victor {answer} as payment.",
            ("What reward awaits the winner?", "How will whoever wins be compensated?"),
            ("forty ducats", "a white mule", "a vineyard"),
        ),
    ),
)
