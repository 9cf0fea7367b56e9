"""How questions speak of the fleet."""

from mesa_pipeline.datasets.synthetic.wording import RelationWording, Topic, Wording

WORDING = Wording(
    agent="the operator",
    attributes={"release": "the release of {entity}", "replicas": "the size of {entity}"},
    relations={
        "runs_on": RelationWording(
            ("On which host does {entity} run?", "Which machine carries {entity}?"), "the host of {entity}", "service"
        ),
        "depends_on": RelationWording(
            ("What does {entity} depend on?", "Which service is upstream of {entity}?"),
            "the service upstream of {entity}",
            "service",
        ),
        "on_call": RelationWording(
            ("Who is on call for {entity}?", "Whom would one page about {entity}?"),
            "the person on call for {entity}",
            "service",
        ),
        "mounted_in": RelationWording(
            ("In which rack is {entity}?", "Where is {entity} mounted?"), "the rack of {entity}", "host"
        ),
    },
    topics=(
        Topic(
            "cooling",
            "[facilities] chiller two hums loudly; technicians arrive {answer}",
            ("When are mechanics due to look at the noisy refrigeration unit?",),
            ("at 16:40", "before sunrise", "on Thursday"),
        ),
        Topic(
            "vendor",
            "[mail] our bandwidth supplier raises tariffs by {answer}",
            ("How much more expensive does the network provider become?",),
            ("9 percent", "a quarter", "two cents per gigabyte"),
        ),
        Topic(
            "badge",
            "[security] visitors must be escorted by {answer}",
            ("Who has to accompany guests?",),
            ("a shift leader", "two guards", "the floor warden"),
        ),
        Topic(
            "generator",
            "[facilities] the diesel backup will be tested {answer}",
            ("When is the emergency power trial?",),
            ("next Saturday", "at 03:15", "after the holidays"),
        ),
        Topic(
            "training",
            "[hr] newcomers rehearse disasters with {answer} as coach",
            ("Which instructor drills the recently hired staff in crisis handling?",),
            ("Mr Abara", "Dr Pell", "Captain Voss"),
        ),
        Topic(
            "insurance",
            "[legal] flooding damage is insured up to {answer}",
            ("What is the maximum payout after water destroys equipment?",),
            ("3 million", "80,000 francs", "half the purchase price"),
        ),
        Topic(
            "parking",
            "[facilities] lorries may unload solely at {answer}",
            ("Which place is reserved for trucks delivering cargo?",),
            ("dock seven", "the north ramp", "gate C"),
        ),
        Topic(
            "rota",
            "[hr] swapping night shifts requires approval from {answer}",
            ("Whose permission is needed to trade late duty?",),
            ("the union steward", "Beatrix", "both managers"),
        ),
    ),
)
