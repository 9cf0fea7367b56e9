"""How questions speak of the repository."""

from mesa_pipeline.datasets.synthetic.wording import RelationWording, Topic, Wording

WORDING = Wording(
    agent="the agent",
    attributes={"value": "the setting {entity}", "tests": "the test result of {entity}"},
    relations={
        "maintained_by": RelationWording(
            ("Who maintains {entity}?", "Which person is the code owner of {entity}?"), "the maintainer of {entity}", "module"
        ),
        "imports": RelationWording(
            ("What does {entity} import directly?", "Which file does {entity} depend on?"),
            "the module that {entity} imports",
            "module",
        ),
        "member_of": RelationWording(
            ("Which team is {entity} in?", "To which team does {entity} belong?"), "the team of {entity}", "person"
        ),
    },
    topics=(
        Topic(
            "office",
            "[chat] facilities: the espresso machine is broken till {answer}",
            ("When will coffee be available once more?",),
            ("Monday", "Wednesday", "the 14th"),
        ),
        Topic(
            "budget",
            "[chat] finance froze all cloud spending above {answer}",
            ("Past what amount is money for hosted servers no longer granted?",),
            ("900 euros", "2k dollars", "350 pounds"),
        ),
        Topic(
            "leave",
            "[chat] our tech lead goes on parental leave in {answer}",
            ("In which month will the engineering boss be absent to look after a baby?",),
            ("March", "June", "October"),
        ),
        Topic(
            "laptop",
            "[mail] stolen notebooks must be reported to {answer}",
            ("Whom does one tell if a portable computer is taken?",),
            ("Ravi at the desk", "the night guard", "Insa from legal"),
        ),
        Topic(
            "offsite",
            "[mail] the autumn retreat will be held in {answer}",
            ("Which destination was picked for the company trip this fall?",),
            ("Porto", "Bergen", "Ljubljana"),
        ),
        Topic(
            "customer",
            "[crm] our largest client threatens to cancel because of {answer}",
            ("Why might the biggest customer quit?",),
            ("slow invoices", "the new login page", "missing exports"),
        ),
        Topic(
            "hiring",
            "[chat] the applicant we interviewed wants {answer} before signing",
            ("What does the job candidate ask for as a condition of joining?",),
            ("a four-day week", "a relocation bonus", "a dog-friendly desk"),
        ),
        Topic(
            "lunch",
            "[chat] the canteen serves {answer} only for vegetarians today",
            ("Which dish is there at noon for people who eat no meat?",),
            ("lentil curry", "mushroom risotto", "bean chili"),
        ),
    ),
)
