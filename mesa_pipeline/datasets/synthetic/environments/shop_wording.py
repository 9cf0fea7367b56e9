"""How questions speak of the shop."""

from mesa_pipeline.datasets.synthetic.wording import RelationWording, Topic, Wording

WORDING = Wording(
    agent="the shopper",
    attributes={
        "price": "the price of the {entity}",
        "stock": "the stock level of the {entity}",
        "status": "the delivery status of {entity}",
    },
    relations={
        "sold_by": RelationWording(
            ("Which merchant sells {entity}?", "Who is the seller of {entity}?"), "the seller of the {entity}", "article"
        ),
        "goes_with": RelationWording(
            ("What is {entity} made to go with?", "Which article is the companion of {entity}?"),
            "the companion piece of the {entity}",
            "article",
        ),
        "ships_from": RelationWording(
            ("From which city does {entity} ship?", "Where do the parcels of {entity} come from?"),
            "the home city of {entity}",
            "seller",
        ),
    },
    topics=(
        Topic(
            "strike",
            "ticker: couriers walk out {answer}, expect late parcels",
            ("When do the delivery drivers go on strike?",),
            ("on Wednesday", "from the 9th", "this weekend"),
        ),
        Topic(
            "recall",
            "notice: toddlers choked on {answer}, bring yours back",
            ("Which item was withdrawn as dangerous for small children?",),
            ("wooden beads", "magnet cubes", "rubber ducks"),
        ),
        Topic(
            "celebrity",
            "ticker: a famous singer opens our flagship in {answer}",
            ("Where does the well-known musician inaugurate the main store?",),
            ("Lyon", "Antwerp", "Krakow"),
        ),
        Topic(
            "charity",
            "footer: one cent per purchase goes to {answer}",
            ("Which cause receives a donation whenever somebody buys?",),
            ("sea rescue", "owl shelters", "village schools"),
        ),
        Topic(
            "packaging",
            "footer: wrapping is made of {answer} since spring",
            ("What material do they use for the boxes nowadays?",),
            ("mushroom fibre", "old maps", "seaweed"),
        ),
        Topic(
            "award",
            "banner: our typeface won {answer}",
            ("Which honour did the font receive?",),
            ("a Golden Quill", "the Oslo medal", "second place at Typo"),
        ),
        Topic(
            "closing",
            "notice: the warehouse shuts {answer} for stocktaking",
            ("When is the depot closed to count the inventory?",),
            ("on the 30th", "at Easter", "for two nights"),
        ),
        Topic(
            "mascot",
            "poll: readers named the crane {answer}",
            ("What is the bird called according to the public vote?",),
            ("Gustav", "Pepita", "Mister Lift"),
        ),
    ),
)
