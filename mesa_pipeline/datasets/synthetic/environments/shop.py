"""A web shop seen as page trees: search, compare, basket, coupons, payment, returns; prices move while one looks."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mesa_pipeline.datasets.synthetic.environments.shop_wording import WORDING
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

MATERIALS = ("walnut", "linen", "copper", "bamboo", "ceramic", "canvas", "felt", "marble", "cork", "steel")
ARTICLES = ("lamp", "kettle", "backpack", "stool", "clock", "blanket", "teapot", "shelf", "mirror", "tray", "vase")
BRANDS = ("Norrfjord", "Calado", "Brightwick", "Umber", "Tessel", "Okami", "Plume")
TRADES = ("Living", "Goods", "Outfitters", "Atelier", "Supply")
CITIES = ("Rotterdam", "Gdansk", "Leipzig", "Turin", "Malmo", "Nantes", "Graz", "Porto")
CARDS = ("card declined", "session expired", "address not serviceable", "basket out of date", "captcha failed")
HOLDS = {
    "age check pending on the account": "confirm date of birth",
    "a customs form must be attached": "attach customs form",
    "the wallet is locked after three logins": "reset wallet pin",
    "the voucher only holds for pickup": "switch to pickup",
}
MOST_PRODUCTS = 9


@dataclass
class Product:
    """Something on sale."""

    name: str
    seller: str
    cents: int
    stock: int
    companion: str = ""

    @property
    def price(self) -> str:
        return f"{self.cents // 100}.{self.cents % 100:02d} EUR"


class Shop(World):
    """A shop whose range is renewed all the time."""

    def __init__(self, rng: Random, task_type: str) -> None:
        super().__init__(rng, "TX-", WORDING.topics)
        self._returns = task_type == "returns_desk"
        self.task = (
            "Handle the returns on the list: find each article, get the label, send it back and see the refund through."
            if self._returns
            else "Buy the articles on the shopping list at a fair price, one order each, and confirm every order."
        )
        self._names = unique_names(rng, "{} {}{n}", MATERIALS, ARTICLES)
        sellers = unique_names(rng, "{} {}{n}", BRANDS, TRADES)
        self._cities = {next(sellers): self.pick(CITIES) for _ in range(6)}
        self._products: list[Product] = []
        self._element = 100
        for _ in range(5):
            self._add_product()

    def play(self) -> Iterator[Turn]:
        while True:
            product = self.pick(self._products)
            order = f"#{self.rng.randint(10, 99)}-{self.identifier().removeprefix('TX-')}"
            goal = f"{'return' if self._returns else 'order'} the {product.name} as {order}"
            yield self.turn("click [next on list]", self._page("List", f"StaticText '{goal}'"), GoalStarted(goal))
            cause = self.announce("inbox (1): regarding {entity}, {cause}", product.name, tuple(HOLDS), 0.45)
            yield from self._browse(product)
            if cause:
                yield from self._hold(product, cause)
            yield from self._pay(product, order, goal)
            if self.chance(0.6):
                yield self._new_arrival()

    def chatter(self) -> str:
        self._element += 1
        product = self.pick(self._products)
        return f"\t[{self._element}] " + self.pick(
            (
                f"link 'Others also looked at the {product.name}'",
                f"img 'photo {self.rng.randint(1, 9)} of {self.rng.randint(9, 14)}'",
                f"StaticText '{self.rng.randint(2, 60)} people have this page open'",
                f"button 'rate this shop {self.rng.randint(1, 5)} of 5'",
                f"link 'Ideas for your {self.pick(('hall', 'balcony', 'desk', 'picnic'))}'",
            )
        )

    def _add_product(self) -> Product:
        companion = self.pick(self._products).name if self._products else ""
        seller = self.pick(tuple(self._cities))
        product = Product(next(self._names), seller, self.rng.randint(490, 19900), self.rng.randint(1, 40), companion)
        self._products.append(product)
        return product

    def _page(self, title: str, *lines: str) -> str:
        """An accessibility tree; element ids are new on every page, as in real browsers."""
        rows = [f"RootWebArea '{title} - Kettle & Crane'", "\tlink 'Home'", "\tlink 'Basket'", *(f"\t{line}" for line in lines)]
        if self.chance(0.3):
            rows.append(f"\tStaticText '{self.pick(('Free delivery over 60 EUR', 'Members save more', 'Rated 4.6 of 5'))}'")
        self._element += self.rng.randint(1, 30)
        return "\n".join(
            row if index == 0 else row.replace("\t", f"\t[{self._element + index}] ", 1) for index, row in enumerate(rows)
        )

    def _browse(self, product: Product) -> Iterator[Turn]:
        yield self._search(product)
        if self.chance(0.8):
            yield self._open(product)
        if self.chance(0.5):
            yield self._seller(product.seller)
        if self.chance(0.35):
            yield from self._dither(product)
        for _ in range(self.rng.randint(0, 2)):
            yield self._queue()

    def _search(self, product: Product) -> Turn:
        """A result list: near-identical records side by side."""
        shown = [product, *self.rng.sample([other for other in self._products if other is not product], 2)]
        self.rng.shuffle(shown)
        lines = [f"link '{other.name}' price {other.price}" for other in shown]
        events = [Change(other.name, "price", other.price) for other in shown]
        return self.turn(f"type [search] {product.name.split()[1]}", self._page("Results", *lines), *events)

    def _open(self, product: Product) -> Turn:
        lines = [
            f"heading '{product.name}'",
            f"StaticText '{product.price}, {product.stock} in stock'",
            f"StaticText '{product.name} is sold by {product.seller}'",
        ]
        events: list[Event] = [
            Change(product.name, "price", product.price),
            Change(product.name, "stock", f"{product.stock} in stock"),
            Relation(product.name, "sold_by", product.seller),
        ]
        if product.companion:
            lines.append(f"StaticText '{product.name} goes with the {product.companion}'")
            events.append(Relation(product.name, "goes_with", product.companion))
        return self.turn(f"click [{product.name}]", self._page(product.name, *lines), *events)

    def _seller(self, seller: str) -> Turn:
        city = self._cities[seller]
        lines = (
            f"heading '{seller}'",
            f"StaticText '{seller} ships from {city}'",
            f"StaticText '{self.rng.randint(12, 900)} reviews'",
        )
        return self.turn(f"click [{seller}]", self._page(seller, *lines), Relation(seller, "ships_from", city))

    def _dither(self, product: Product) -> Iterator[Turn]:
        for _ in range(self.rng.randint(2, 3)):
            yield self.turn("click [add to wishlist]", self._page("Wishlist", f"StaticText 'saved {product.name}'"))
            yield self.turn("click [remove from wishlist]", self._page("Wishlist", "StaticText 'nothing saved'"))

    def _queue(self) -> Turn:
        self.gossip(0.5)
        if self.chance(0.4):
            self._reprice()
        if self.chance(0.3):
            return self.turn("scroll down", self._page("Help", "link 'Delivery'", "link 'Contact'", "link 'Terms'"))
        position = f"position {self.rng.randint(2, 95)}"
        return self.turn("click [chat status]", self._page("Chat", f"StaticText 'waiting, {position}'"), Reading(position))

    def _reprice(self) -> None:
        product = self.pick(self._products)
        product.cents = max(290, product.cents + self.rng.choice((-1, 1)) * self.rng.randint(30, 900))
        self.interject(f"banner: {product.name} now {product.price}", Change(product.name, "price", product.price))

    def _hold(self, product: Product, cause: str) -> Iterator[Turn]:
        for _ in range(self.rng.randint(2, 4)):
            yield self._queue()
        page = self._page("Checkout", "alert 'We could not go on. Code 31.'")
        yield self.turn(f"click [quick checkout {product.name}]", page, Refusal(product.name))
        yield self._queue()
        yield self.turn(
            f"click [{HOLDS[cause]}] for {product.name}", self._page("Account", "alert 'saved'"), Remedy(product.name)
        )

    def _pay(self, product: Product, order: str, goal: str) -> Iterator[Turn]:
        verb = "request refund" if self._returns else "pay"
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            reason, transaction = self.pick(CARDS), self.identifier()
            page = self._page("Checkout", f"alert '{reason}'", f"StaticText 'reference {transaction}'")
            yield self.turn(f"click [{verb}] for {product.name}", page, Failure(product.name, reason, transaction))
            yield self._queue()
        product.stock = product.stock + 1 if self._returns else max(product.stock - 1, 0)
        page = self._page(
            "Thank you",
            f"heading 'done: {goal}'",
            f"StaticText 'order {order} confirmed'",
            f"StaticText '{product.stock} in stock'",
        )
        yield self.turn(
            f"click [{verb}] for {product.name}",
            page,
            Change(product.name, "stock", f"{product.stock} in stock"),
            GoalFinished(goal),
        )
        if self.chance(0.5):
            status = self.pick(("packed", "in transit", "held at depot", "delivered"))
            yield self.turn(
                f"click [track {order}]",
                self._page("Tracking", f"StaticText '{order}: {status}'"),
                Change(f"parcel {order}", "status", status),
            )

    def _new_arrival(self) -> Turn:
        """The range stays of one size: something new comes, the oldest leaves."""
        product = self._add_product()
        self._products = self._products[-MOST_PRODUCTS:]
        lines = (f"heading 'New: {product.name}'", f"StaticText '{product.price}'", f"StaticText 'sold by {product.seller}'")
        return self.turn(
            "click [what is new]",
            self._page("New", *lines),
            Change(product.name, "price", product.price),
            Relation(product.name, "sold_by", product.seller),
        )
