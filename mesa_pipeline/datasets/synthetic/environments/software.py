"""A file-editing software agent: tickets against a repository, tests that fail, hooks that refuse, colleagues who push."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mesa_pipeline.datasets.synthetic.environments.software_wording import WORDING
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

PACKAGES = ("billing", "net", "auth", "search", "export", "cache", "mailer", "audit", "ledger", "geo")
MODULES = ("invoice", "retry", "session", "index", "writer", "parser", "router", "schema", "token", "batch", "queue")
FIRST_NAMES = ("mira", "tomas", "aiko", "lena", "omar", "priya", "jonas", "carla", "felix", "noor")
LAST_NAMES = ("holt", "brandt", "okafor", "silva", "nyman", "costa", "weiss", "tanaka")
TEAMS = ("Payments", "Platform", "Identity", "Discovery", "Reporting", "Edge")
LIMITS = ("MAX", "MIN", "DEFAULT", "SOFT", "HARD")
QUANTITIES = ("RETRIES", "TIMEOUT", "PAGE_SIZE", "BATCH", "DEPTH", "WORKERS", "BACKOFF", "WINDOW")
BUGS = ("rounding error", "race condition", "memory leak", "encoding bug", "off-by-one slip", "stale lookup", "deadlock")
REFACTORINGS = ("dead branch", "circular import", "duplicated helper", "tangled constructor", "magic number", "god class")
ERRORS = ("AssertionError", "KeyError", "TimeoutError", "UnicodeDecodeError", "ImportError")
HOOKS = {
    "a changelog line is missing": "append entry to CHANGELOG.md",
    "the licence header expired last night": "run scripts/renew_header.sh",
    "the signing key was rotated": "import the new public key",
    "coverage dipped below the floor": "write two more assertions",
}
PATIENCE = 3


@dataclass
class Module:
    """A source file with one tunable constant; ``broken`` tests out of ``tests`` fail."""

    path: str
    constant: str
    value: int
    tests: int
    broken: int
    maintainer: str
    dependency: str = ""

    @property
    def test_file(self) -> str:
        package, name = self.path.removeprefix("src/").removesuffix(".py").split("/")
        return f"tests/{package}/test_{name}.py"


class Repository(World):
    """A repository whose older modules keep being touched while new ones arrive with every pull."""

    def __init__(self, rng: Random, task_type: str) -> None:
        super().__init__(rng, "TRACE-", WORDING.topics)
        self._flaws = BUGS if task_type == "bug_fix" else REFACTORINGS
        self._verb = "fix" if task_type == "bug_fix" else "clean up"
        self.task = (
            f"Work through the ticket queue of the repository: {self._verb} what each ticket names, and push once tests pass."
        )
        self._paths = unique_names(rng, "src/{}/{}{n}.py", PACKAGES, MODULES)
        self._constants = unique_names(rng, "{}_{}{n}", LIMITS, QUANTITIES)
        people = unique_names(rng, "{}.{}{n}", FIRST_NAMES, LAST_NAMES)
        self._teams = {next(people): self.pick(TEAMS) for _ in range(6)}
        self._modules: list[Module] = []
        for _ in range(4):
            self._add_module()

    def play(self) -> Iterator[Turn]:
        ticket = 0
        while True:
            module = self._modules[-1] if self.chance(0.6) else self.pick(self._modules)
            ticket += 1
            goal = f"{self._verb} the {self.pick(self._flaws)} in {module.path} (ticket {ticket})"
            yield self._read_ticket(goal, module)
            notice = "[bot] heads-up on {entity}: {cause}, whoever ships next must sort it out"
            cause = self.announce(notice, module.path, tuple(HOOKS), 0.45)
            yield from self._orient(module)
            yield from self._repair(module)
            yield from self._push(module, goal, cause)
            yield self._pull()

    def chatter(self) -> str:
        module = self.pick(self._modules)
        return self.pick(
            (
                f"DEBUG watcher: inode {self.rng.randint(10_000, 99_999)} of {module.path} unchanged",
                f"INFO  formatter skipped {module.test_file}, {self.rng.randint(20, 700)} lines",
                f"warning: line {self.rng.randint(3, 500)} of {module.path} exceeds {self.rng.choice((100, 120))} columns",
                f"hint: {self.rng.randint(2, 60)} objects unpacked in {self.rng.randint(3, 900)} ms",
                f"DEBUG resolver: {self.pick(PACKAGES)}.{self.pick(MODULES)} satisfied from wheelhouse",
            )
        )

    def _add_module(self) -> Module:
        tests = self.rng.randint(6, 40)
        module = Module(
            next(self._paths),
            next(self._constants),
            self.rng.randint(2, 90),
            tests,
            self.rng.randint(1, min(5, tests)),
            self.pick(tuple(self._teams)),
            self.pick(self._modules).path if self._modules else "",
        )
        self._modules.append(module)
        self._modules = self._modules[-8:]
        return module

    def _read_ticket(self, goal: str, module: Module) -> Turn:
        module.broken = max(module.broken, self.rng.randint(1, 4))
        text = f"# Ticket\ntitle: {goal}\nsetting involved: {module.constant} = {module.value}\nlabels: triaged, needs-test"
        return self.turn("open next ticket", text, GoalStarted(goal), Change(module.constant, "value", str(module.value)))

    def _orient(self, module: Module) -> Iterator[Turn]:
        """Find out who owns the module and what it uses."""
        others = [other for other in self._modules if other is not module]
        lines = sorted([module, *self.rng.sample(others, min(3, len(others)))], key=lambda other: other.path)
        if self.chance(0.8):
            yield self.turn(
                f"grep -n '{module.path}' CODEOWNERS -C 2",
                "\n".join(f"{other.path}    @{other.maintainer}" for other in lines),
                *(Relation(other.path, "maintained_by", other.maintainer) for other in lines),
            )
        if module.dependency and self.chance(0.8):
            tree = f"{module.path} imports {module.dependency} (direct)\n1 edge, no cycles"
            yield self.turn(f"deptree {module.path}", tree, Relation(module.path, "imports", module.dependency))
        if self.chance(0.5):
            person = self.pick((module.maintainer, *self._teams))
            card = f"{person} is in the {self._teams[person]} team, joined {self.rng.randint(2015, 2024)}"
            yield self.turn(f"whois {person}", card, Relation(person, "member_of", f"{self._teams[person]} team"))
        yield from self._idle()
        if module.dependency and self.chance(0.4):
            yield self._import_failure(module)

    def _import_failure(self, module: Module) -> Turn:
        trace = self.identifier()
        place = f'File "{module.dependency}", line {self.rng.randint(4, 380)}'
        text = f"Traceback (most recent call last):\n  {place}\nImportError [{trace}]"
        event = Failure(module.dependency, "ImportError", trace)
        return self.turn(f"python -m compileall {module.dependency}", text, event)

    def _repair(self, module: Module) -> Iterator[Turn]:
        """Edit and test until the tests pass, with the loops of someone who hopes for another result."""
        for attempt in range(PATIENCE):
            yield self._test(module)
            if self.chance(0.25):
                yield from self._hope(module)
            yield self._edit(module)
            if self.chance(0.4):
                yield from self._idle()
            module.broken = 0 if attempt == PATIENCE - 1 or self.chance(0.4) else self.rng.randint(1, 4)
            if not module.broken:
                break
        yield self._test(module)

    def _test(self, module: Module) -> Turn:
        action = f"pytest {module.test_file}"
        passed = module.tests - module.broken
        if not module.broken:
            result = f"{passed} passed"
            text = f"collected {module.tests} items\n{'.' * module.tests}\n== {result} in {self.rng.uniform(0.2, 9):.2f}s =="
            return self.turn(action, text, Change(module.path, "tests", result), Reading(result))
        error, trace = self.pick(ERRORS), self.identifier()
        result = f"{module.broken} failed, {passed} passed"
        frames = [
            f"{module.path}:{self.rng.randint(5, 400)}: in {self.pick(MODULES)}_step" for _ in range(self.rng.randint(1, 4))
        ]
        text = "\n".join([f"collected {module.tests} items", *frames, f"E   {error} [{trace}]", f"== {result} =="])
        events = (Change(module.path, "tests", result), Reading(result), Failure(module.path, error, trace))
        return self.turn(action, text, *events)

    def _edit(self, module: Module) -> Turn:
        old, module.value = module.value, self.pick([value for value in range(2, 90) if value != module.value])
        diff = f"--- a/{module.path}\n+++ b/{module.path}\n-{module.constant} = {old}\n+{module.constant} = {module.value}"
        events = (Change(module.constant, "value", str(module.value)),)
        return self.turn(f"edit {module.path}: set {module.constant} = {module.value}", diff, *events)

    def _hope(self, module: Module) -> Iterator[Turn]:
        for _ in range(self.rng.randint(2, 3)):
            yield self.turn("git stash", f"Saved working directory and index state WIP on main: {module.path}")
            yield self.turn("git stash pop", f"On branch main\n\tmodified:   {module.path}\nDropped refs/stash@{{0}}")

    def _push(self, module: Module, goal: str, cause: str) -> Iterator[Turn]:
        if cause:
            yield from self._idle()
            yield self.turn(f"git push origin {module.path}", "remote: hook declined (exit 7)", Refusal(module.path))
            yield from self._idle()
            yield self.turn(f"{HOOKS[cause]} for {module.path}", "ok", Remedy(module.path))
        text = f"To origin\n   {self.rng.getrandbits(28):07x}..{self.rng.getrandbits(28):07x}  main -> main\nclosed: {goal}"
        yield self.turn(f"git push origin {module.path}", text, GoalFinished(goal))

    def _pull(self) -> Turn:
        """Colleagues' changes: a new module, and a constant moved in an older one."""
        module = self._add_module()
        other = self.pick(self._modules[:-1])
        other.value = self.pick([value for value in range(2, 90) if value != other.value])
        text = f"Updating main\n create mode 100644 {module.path}\n {other.path} | 1 + (sets {other.constant} = {other.value})"
        return self.turn("git pull --rebase", text, Change(other.constant, "value", str(other.value)))

    def _idle(self) -> Iterator[Turn]:
        self.gossip(0.5)
        yield self.pick((self._git_status, self._load, self._load, self._think))()

    def _git_status(self) -> Turn:
        modified = self.rng.sample(self._modules, 2)
        return self.turn("git status --short", "\n".join(f" M {module.path}" for module in modified))

    def _load(self) -> Turn:
        load = f"{self.rng.uniform(0.1, 6):.2f}"
        return self.turn("uptime", f"load average: {load}", Reading(load))

    def _think(self) -> Turn:
        return self.turn("think", f"Let me look at {self.pick(PACKAGES)} again before touching anything else.")
