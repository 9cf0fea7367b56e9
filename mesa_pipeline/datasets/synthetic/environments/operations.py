"""An operations console: services on hosts, rollouts, incidents, freezes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from mesa_pipeline.datasets.synthetic.environments.operations_wording import WORDING
from mesa_pipeline.datasets.synthetic.events import (
    Change,
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

SUBJECTS = ("orders", "billing", "catalog", "session", "shipping", "pricing", "media", "alerts", "profile", "quota")
ROLES = ("api", "worker", "gateway", "indexer", "relay", "cache")
REGIONS = ("fra", "ams", "dub", "osl", "mad")
METALS = ("basalt", "quartz", "cobalt", "granite", "onyx", "marble", "flint", "agate")
ENGINEERS = ("Ines", "Bram", "Yuki", "Odile", "Samir", "Greta", "Paolo", "Wanda", "Emeka", "Tuva")
SURNAMES = ("Keller", "Moreau", "Adeyemi", "Lindqvist", "Rossi", "Park", "Novak", "Dutra")
REASONS = ("image pull backoff", "readiness probe failed", "out of memory", "connection refused", "quota exceeded")
FREEZES = {
    "the tax audit snapshot is running": "release the audit hold",
    "its certificate lapsed overnight": "renew the certificate",
    "the disk array is being rebuilt": "fail over to the spare array",
    "a legal hold was placed on it": "countersign the waiver",
}
MOST_SERVICES = 7


@dataclass
class Service:
    """A deployed service."""

    name: str
    host: str
    owner: str
    dependency: str
    version: tuple[int, int, int]
    replicas: int

    @property
    def release(self) -> str:
        return "v" + ".".join(map(str, self.version))


class Fleet(World):
    """A fleet in which services are rolled out, scaled, retired and replaced."""

    def __init__(self, rng: Random, task_type: str) -> None:
        super().__init__(rng, "INC-", WORDING.topics)
        self._incident = task_type == "incident_response"
        self.task = (
            "You are on call. Bring every degraded service back within its objective."
            if self._incident
            else "Roll out the queued releases, one service after the other, without breaking what depends on them."
        )
        self._names = unique_names(rng, "{}-{}{n}", SUBJECTS, ROLES)
        hosts = unique_names(rng, "{}-{}{n}", REGIONS, METALS)
        self._racks = {next(hosts): f"rack {self.rng.choice('ABCDEFGH')}{self.rng.randint(1, 30)}" for _ in range(6)}
        people = unique_names(rng, "{} {}{n}", ENGINEERS, SURNAMES)
        self._people = [next(people) for _ in range(6)]
        self._services: list[Service] = []
        for _ in range(5):
            self._add_service()

    def play(self) -> Iterator[Turn]:
        yield self._inventory()
        while True:
            service = self.pick(self._services)
            target = self._next_version(service)
            goal = f"restore {service.name}" if self._incident else f"ship {target} to {service.name}"
            goal += f" for change {self.rng.randint(100, 999)}-{self.rng.choice('KLMNPQ')}"
            yield self.turn("next assignment", f"assignment: {goal}", GoalStarted(goal))
            cause = self.announce("[pager] note for {entity}: {cause}", service.name, tuple(FREEZES), 0.5)
            yield from self._survey(service)
            if cause:
                yield from self._frozen(service, cause)
            yield from self._roll_out(service)
            yield from self._scale(service)
            done = f"checks green, closed: {goal}\ncurrent release {service.release}"
            yield self.turn(f"verify {service.name}", done, GoalFinished(goal))
            if self.chance(0.4):
                yield self._replace_oldest()

    def chatter(self) -> str:
        service = self.pick(self._services)
        return self.pick(
            (
                json.dumps({"level": "debug", "svc": service.name, "gc_pause_us": self.rng.randint(20, 9000)}),
                f'level=info svc={service.name} msg="heartbeat" seq={self.rng.randint(1000, 99999)}',
                f'level=warn svc={service.name} msg="slow query" took={self.rng.randint(300, 4000)}us',
                f"kernel: eth{self.rng.randint(0, 3)} link up, {self.rng.choice((10, 25, 40))} Gbps",
                f"cron: rotated {self.rng.randint(2, 50)} journals",
            )
        )

    def _add_service(self) -> Service:
        service = Service(
            name=next(self._names),
            host=self.pick(tuple(self._racks)),
            owner=self.pick(self._people),
            dependency=self.pick(self._services).name if self._services else "",
            version=(self.rng.randint(0, 4), self.rng.randint(0, 12), self.rng.randint(0, 30)),
            replicas=self.rng.randint(2, 9),
        )
        self._services.append(service)
        return service

    def _inventory(self) -> Turn:
        rows = [f"{service.name:<20} {service.release:<10} {service.replicas} replicas" for service in self._services]
        releases = [Change(service.name, "release", service.release) for service in self._services]
        sizes = [Change(service.name, "replicas", f"{service.replicas} replicas") for service in self._services]
        return self.turn("fleet list", "\n".join(["SERVICE              RELEASE    SIZE", *rows]), *releases, *sizes)

    def _next_version(self, service: Service) -> str:
        major, minor, patch = service.version
        service.version = (major, minor, patch + 1) if self.chance(0.6) else (major, minor + 1, 0)
        return service.release

    def _survey(self, service: Service) -> Iterator[Turn]:
        """Look up where things run and who to call, in no fixed order."""
        lookups = [
            partial(self._describe, service),
            partial(self._locate, service.host),
            partial(self._call_list, service),
        ]
        self.rng.shuffle(lookups)
        for look_up in lookups[: self.rng.randint(1, 3)]:
            yield look_up()
            if self.chance(0.4):
                yield self._health(self.pick(self._services))
        if self.chance(0.35):
            yield from self._watch()

    def _describe(self, service: Service) -> Turn:
        card: dict[str, object] = {"service": service.name, "host": service.host, "probes": {"live": "ok", "ready": "ok"}}
        events: list[Relation] = [Relation(service.name, "runs_on", service.host)]
        if service.dependency:
            card["upstream"] = service.dependency
            events.append(Relation(service.name, "depends_on", service.dependency))
        return self.turn(f"describe {service.name}", json.dumps(card, indent=self.pick((None, 2))), *events)

    def _locate(self, host: str) -> Turn:
        machine = f"{self.rng.choice((16, 32, 64))} cores, kernel 6.{self.rng.randint(1, 12)}"
        text = f"{host} is mounted in {self._racks[host]}, {machine}"
        return self.turn(f"inventory {host}", text, Relation(host, "mounted_in", self._racks[host]))

    def _call_list(self, service: Service) -> Turn:
        chosen = sorted({service.name, *(other.name for other in self.rng.sample(self._services, 2))})
        rows = [other for other in self._services if other.name in chosen]
        text = "SERVICE              ON CALL\n" + "\n".join(f"{row.name:<20} {row.owner}" for row in rows)
        return self.turn("oncall list", text, *(Relation(row.name, "on_call", row.owner) for row in rows))

    def _health(self, service: Service) -> Turn:
        self.gossip(0.4)
        latency = f"p99 {self.rng.randint(40, 900)} ms"
        text = json.dumps({"service": service.name, "latency": latency, "errors": round(self.rng.random() / 50, 4)})
        return self.turn(f"health {service.name}", text, Reading(latency))

    def _watch(self) -> Iterator[Turn]:
        first, second = self.rng.sample(self._services, 2)
        for _ in range(self.rng.randint(2, 3)):
            yield self._health(first)
            yield self._health(second)

    def _frozen(self, service: Service, cause: str) -> Iterator[Turn]:
        for _ in range(self.rng.randint(2, 4)):
            yield self._health(self.pick([other for other in self._services if other is not service]))
        yield self.turn(f"rollout {service.name} --canary", "denied by policy engine, rule 12", Refusal(service.name))
        yield self._health(self.pick(self._services))
        yield self.turn(f"{FREEZES[cause]} for {service.name}", "acknowledged", Remedy(service.name))

    def _roll_out(self, service: Service) -> Iterator[Turn]:
        for _ in range(self.rng.choice((0, 0, 1, 1, 2))):
            reason, incident = self.pick(REASONS), self.identifier()
            text = f"rollout of {service.release} aborted: {reason}\nopened {incident}\nrolled back automatically"
            yield self.turn(f"rollout {service.name} {service.release}", text, Failure(service.name, reason, incident))
            yield self._health(service)
        text = f"{service.replicas}/{service.replicas} updated\n{service.name} now serves {service.release}"
        yield self.turn(f"rollout {service.name} {service.release}", text, Change(service.name, "release", service.release))

    def _scale(self, service: Service) -> Iterator[Turn]:
        if self.chance(0.6):
            service.replicas = self.pick([count for count in range(2, 12) if count != service.replicas])
            text = f"scaled to {service.replicas} replicas"
            yield self.turn(
                f"scale {service.name} {service.replicas}",
                text,
                Change(service.name, "replicas", f"{service.replicas} replicas"),
            )
        if self.chance(0.4):
            other = self.pick([other for other in self._services if other is not service])
            other.replicas = self.pick([count for count in range(2, 12) if count != other.replicas])
            note = f"[autoscaler] {other.name} set to {other.replicas} replicas"
            self.interject(note, Change(other.name, "replicas", f"{other.replicas} replicas"))
            yield self._health(service)

    def _replace_oldest(self) -> Turn:
        """Retire a service once the fleet is large, and bring up another: the fleet never stays the same."""
        retired = self._services.pop(0) if len(self._services) >= MOST_SERVICES else None
        fresh = self._add_service()
        farewell = f"retired {retired.name}\n" if retired else ""
        lost = (Change(retired.name, attribute, "retired") for attribute in ("release", "replicas")) if retired else ()
        text = f"{farewell}registered {fresh.name} at {fresh.release} with {fresh.replicas} replicas"
        return self.turn(
            "sync registry",
            text,
            *lost,
            Change(fresh.name, "release", fresh.release),
            Change(fresh.name, "replicas", f"{fresh.replicas} replicas"),
        )
