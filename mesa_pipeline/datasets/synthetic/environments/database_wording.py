"""How questions speak of the schema."""

from mesa_pipeline.datasets.synthetic.wording import RelationWording, Topic, Wording

WORDING = Wording(
    agent="the analyst",
    attributes={"rows": "the size of {entity}", "type": "the column type of {entity}"},
    relations={
        "owned_by": RelationWording(
            ("Which role owns {entity}?", "Who is the owner of {entity}?"), "the role that owns {entity}", "table"
        ),
        "built_from": RelationWording(
            ("Which table is {entity} built from?", "What is the source of {entity}?"),
            "the table that {entity} is built from",
            "table",
        ),
        "granted_by": RelationWording(
            ("Which office granted {entity}?", "Who hands out {entity}?"), "the office behind {entity}", "role"
        ),
    },
    topics=(
        Topic(
            "licence",
            "MOTD: our vendor contract lapses {answer}",
            ("When does the agreement with the supplier expire?",),
            ("in August", "on the 2nd", "at year end"),
        ),
        Topic(
            "backup",
            "MOTD: tapes are driven to {answer} each night",
            ("Where do the safety copies get transported?",),
            ("a salt mine", "the old bank", "Uppsala"),
        ),
        Topic(
            "password",
            "MOTD: reuse of credentials will cost you {answer}",
            ("What is the penalty for employing the same secret twice?",),
            ("a cake for everyone", "two days of access", "a written warning"),
        ),
        Topic(
            "teacher",
            "wall: beginners meet {answer} for lessons",
            ("Who instructs novices?",),
            ("old Henrik", "Ms Farouk", "the librarian"),
        ),
        Topic(
            "census",
            "MOTD: the population survey figures arrive {answer}",
            ("When are the demographic statistics delivered?",),
            ("mid May", "by sunset", "with the next courier"),
        ),
        Topic(
            "quake",
            "MOTD: tremors knocked out {answer} yesterday",
            ("Which equipment did the earthquake damage?",),
            ("node nine", "the tape robot", "both printers"),
        ),
        Topic(
            "visitor",
            "wall: the minister inspects {answer} tomorrow",
            ("Which place does the politician visit?",),
            ("the vault", "room 3.14", "our canteen"),
        ),
        Topic(
            "heating",
            "wall: bring jumpers, radiators are off until {answer}",
            ("How long will the building stay cold?",),
            ("Friday noon", "the plumber returns", "mid November"),
        ),
    ),
)
