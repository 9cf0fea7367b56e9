"""How questions speak of the household."""

from mesa_pipeline.datasets.synthetic.wording import RelationWording, Topic, Wording

WORDING = Wording(
    agent="the robot",
    attributes={"location": "the location of the {entity}", "condition": "the condition of the {entity}"},
    relations={
        "stands_in": RelationWording(
            ("In which room is {entity}?", "In what part of the home does {entity} stand?"), "the room of {entity}", "place"
        ),
        "belongs_to": RelationWording(
            ("Whose is {entity}?", "To whom does {entity} belong?"), "the owner of the {entity}", "object"
        ),
    },
    topics=(
        Topic(
            "vet",
            "The phone rings: the kitten sees the vet {answer}.",
            ("When is the doctor's appointment for the young cat?",),
            ("at half past two", "tomorrow", "on Monday"),
        ),
        Topic(
            "allergy",
            "Fridge note: grandmother must avoid {answer}.",
            ("What is the old lady allergic to?",),
            ("walnuts", "shellfish", "celery"),
        ),
        Topic(
            "guest",
            "Radio murmur; someone says our cousin lands in {answer}.",
            ("At which airport does the relative touch down?",),
            ("Bologna", "Tromso", "Split"),
        ),
        Topic(
            "piano",
            "Next door they practise {answer} on the piano.",
            ("Which piece does the neighbour play?",),
            ("a Chopin nocturne", "the same waltz", "boogie"),
        ),
        Topic(
            "garden",
            "Through the window: frost killed the {answer}.",
            ("Which plant did not survive the ice outdoors?",),
            ("lemon tree", "dahlias", "fig"),
        ),
        Topic(
            "homework",
            "Crumpled sheet: the pupil failed in {answer}.",
            ("At which school subject is the child bad?",),
            ("geometry", "Latin", "chemistry"),
        ),
        Topic(
            "rent",
            "Letter on the mat: landlord wants {answer} more.",
            ("By how much does the owner of the flat raise the monthly payment?",),
            ("60 crowns", "a tenth", "fifty euros"),
        ),
        Topic(
            "party",
            "Calendar scribble: birthday surprise, hide the {answer}.",
            ("What should be kept out of sight ahead of the celebration?",),
            ("bicycle", "three balloons", "puppy"),
        ),
    ),
)
