"""A SQL console: tables that fill and shrink, views, grants, locks."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from mesa_pipeline.datasets.synthetic.environments.database_wording import WORDING
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

TOPICS = ("sales", "visits", "meters", "trips", "claims", "orders", "patients", "sensors", "loans", "flights")
SUFFIXES = ("daily", "raw", "stage", "archive", "by_region", "hist", "clean")
ROLES = ("analyst", "steward", "loader", "auditor", "curator", "planner")
OFFICES = ("Finance", "Logistics", "Research", "Compliance", "Marketing")
COLUMNS = ("region", "amount", "opened_on", "status", "owner_ref", "score")
TYPES = ("integer", "bigint", "text", "numeric(12,2)", "date", "varchar(40)")
ERRORS = ("column does not exist", "statement timeout", "permission denied", "deadlock detected", "division by zero")
LOCKS = {
    "the nightly vacuum still holds it": "call stop_vacuum",
    "a replica is catching up": "call resync_replica",
    "its tablespace ran full": "call extend_tablespace",
    "an auditor pinned a snapshot": "call release_snapshot",
}
MOST_TABLES = 8


@dataclass
class Table:
    """A table with its row count."""

    name: str
    rows: int
    role: str
    source: str
    column: str
    type: str


class SqlConsole(World):
    """A schema in which tables come, are loaded, trimmed and leave again."""

    def __init__(self, rng: Random, task_type: str) -> None:
        super().__init__(rng, "QID-", WORDING.topics)
        self._cleanup = task_type == "cleanup"
        self.task = (
            "Bring the tables on the worksheet into order: remove what is stale and set the right column types."
            if self._cleanup
            else "Prepare the monthly reports: load each table, check it and publish the figures."
        )
        self._names = unique_names(rng, "{}_{}{n}", TOPICS, SUFFIXES)
        roles = unique_names(rng, "{}_{}{n}", ROLES, ("ro", "rw"))
        self._offices = {next(roles): self.pick(OFFICES) for _ in range(6)}
        self._tables: list[Table] = []
        for _ in range(5):
            self._add_table()

    def play(self) -> Iterator[Turn]:
        sheet = 0
        yield self._list_tables()
        while True:
            sheet += 1
            table = self.pick(self._tables)
            goal = f"{'clean' if self._cleanup else 'publish'} {table.name} for sheet {sheet}"
            yield self.turn("worksheet next", f"TODO  {goal}\nowner unknown, see catalog", GoalStarted(goal))
            cause = self.announce("NOTICE:  about {entity}: {cause}", table.name, tuple(LOCKS), 0.45)
            yield from self._explore(table)
            if cause:
                yield from self._locked(table, cause)
            for _ in range(self.rng.randint(1, 2)):
                yield from self._modify(table)
            yield self.turn(
                f"worksheet close {sheet}", f"CLOSED  {goal}\n{len(self._tables)} tables in schema", GoalFinished(goal)
            )
            if self.chance(0.5):
                yield self._create()

    def chatter(self) -> str:
        table = self.pick(self._tables)
        return self.pick(
            (
                f"LOG:  checkpoint complete, wrote {self.rng.randint(3, 900)} buffers",
                f"DEBUG:  plan for {table.name} reused, cost {self.rng.uniform(1, 9000):.2f}",
                f"LOG:  automatic analyze of {table.name}, {self.rng.randint(1, 90)} pages",
                f"HINT:  work_mem is {self.rng.choice((4, 16, 64))}MB, {self.rng.randint(1, 9)} spills",
                f"LOG:  connection received, port {self.rng.randint(32_000, 61_000)}",
            )
        )

    def _add_table(self) -> Table:
        source = self.pick(self._tables).name if self._tables else ""
        role = self.pick(tuple(self._offices))
        table = Table(next(self._names), self.rng.randint(40, 90_000), role, source, self.pick(COLUMNS), self.pick(TYPES))
        self._tables.append(table)
        return table

    def _list_tables(self) -> Turn:
        listing = "\n".join(f" public | {table.name:<20} | {table.rows} rows" for table in self._tables)
        sizes = (Change(table.name, "rows", f"{table.rows} rows") for table in self._tables)
        return self.turn("\\dt+", f"List of relations\n{listing}\n({len(self._tables)} relations)", *sizes)

    def _explore(self, table: Table) -> Iterator[Turn]:
        lookups = [partial(self._owners, table), partial(self._lineage, table), partial(self._role, table.role)]
        self.rng.shuffle(lookups)
        yield self._count(table)
        for look_up in lookups[: self.rng.randint(1, 3)]:
            yield look_up()
            if self.chance(0.3):
                yield self._lag()
        if self.chance(0.35):
            yield from self._compare(table)
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            yield self._fail(table)

    def _owners(self, table: Table) -> Turn:
        """Some rows of the catalog: near-identical records side by side."""
        others = self.rng.sample([other for other in self._tables if other is not table], 2)
        rows = sorted([table, *others], key=lambda other: other.name)
        text = " table                | owner\n----------------------+---------\n"
        text += "\n".join(f" {row.name:<20} | {row.role}" for row in rows) + f"\n({len(rows)} rows)"
        facts = (Relation(row.name, "owned_by", row.role) for row in rows)
        return self.turn("SELECT * FROM catalog.owners LIMIT 3", text, *facts)

    def _lineage(self, table: Table) -> Turn:
        if not table.source:
            return self.turn(f"SHOW LINEAGE {table.name}", "(0 rows)")
        text = f"{table.name} <- {table.source}  [full refresh, {self.rng.randint(1, 24)}h]"
        return self.turn(f"SHOW LINEAGE {table.name}", text, Relation(table.name, "built_from", table.source))

    def _role(self, role: str) -> Turn:
        office = f"{self._offices[role]} office"
        return self.turn(
            f"\\du {role}", f"role {role} was granted by {office}, no superuser", Relation(role, "granted_by", office)
        )

    def _count(self, table: Table) -> Turn:
        rows = f"{table.rows} rows"
        text = f"{table.name} holds {rows}\nTime: {self.rng.uniform(1, 900):.1f} ms"
        return self.turn(f"SELECT count(*) FROM {table.name}", text, Reading(rows), Change(table.name, "rows", rows))

    def _compare(self, table: Table) -> Iterator[Turn]:
        other = self.pick([other for other in self._tables if other is not table])
        for _ in range(self.rng.randint(2, 3)):
            yield self._count(table)
            yield self._count(other)

    def _lag(self) -> Turn:
        self.gossip(0.6)
        lag = f"{self.rng.randint(1, 999)} kB behind"
        return self.turn("SHOW REPLICATION LAG", f"replica eu-2: {lag}", Reading(lag))

    def _fail(self, table: Table) -> Turn:
        reason, query = self.pick(ERRORS), self.identifier()
        where = self.pick(COLUMNS)
        text = f"ERROR:  {reason}\nLINE 1: ... GROUP BY {where}\nquery {query} cancelled"
        return self.turn(
            f"SELECT {where}, sum(amount) FROM {table.name} GROUP BY {where}", text, Failure(table.name, reason, query)
        )

    def _locked(self, table: Table, cause: str) -> Iterator[Turn]:
        yield self._lag()
        for _ in range(self.rng.randint(1, 3)):
            yield self._count(self.pick([other for other in self._tables if other is not table]))
        yield self.turn(f"LOCK TABLE {table.name} NOWAIT", "ERROR:  could not obtain lock, SQLSTATE 55P03", Refusal(table.name))
        yield self._lag()
        yield self.turn(f"{LOCKS[cause]}('{table.name}')", "CALL", Remedy(table.name))

    def _modify(self, table: Table) -> Iterator[Turn]:
        if self._cleanup and self.chance(0.6):
            column = self.pick(COLUMNS)
            kind = self.pick(TYPES)
            text = f"ALTER TABLE\n{table.name}.{column} is now {kind}"
            action = f"ALTER TABLE {table.name} ALTER {column} TYPE {kind}"
            yield self.turn(action, text, Change(f"{table.name}.{column}", "type", kind))
            return
        moved = min(table.rows, self.rng.randint(1, max(table.rows // 3, 1)))
        table.rows += -moved if self._cleanup else moved
        verb = "DELETE FROM" if self._cleanup else "INSERT INTO"
        tail = (
            f" WHERE batch = {self.rng.randint(1, 60)}" if self._cleanup else f" SELECT * FROM load_{self.rng.randint(1, 60)}"
        )
        rows = f"{table.rows} rows"
        text = f"{verb.split(maxsplit=1)[0]} {moved}\n{table.name} now holds {rows}"
        yield self.turn(f"{verb} {table.name}{tail}", text, Change(table.name, "rows", rows))
        if self.chance(0.5):
            yield self._lag()

    def _create(self) -> Turn:
        """A new table; the oldest leaves once the schema is large."""
        dropped = self._tables.pop(0) if len(self._tables) >= MOST_TABLES else None
        table = self._add_table()
        table.source = self._tables[0].name
        text = f"SELECT {table.rows}\n{table.name} now holds {table.rows} rows"
        events: list[Event] = [
            Change(table.name, "rows", f"{table.rows} rows"),
            Relation(table.name, "built_from", table.source),
        ]
        if dropped:
            text += f"\nNOTICE:  {dropped.name} dropped"
            events.append(Change(dropped.name, "rows", "dropped"))
        return self.turn(f"CREATE TABLE {table.name} AS TABLE {table.source}", text, *events)
