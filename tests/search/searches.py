"""A small search to try things on: two tables, sources good and bad, a proposer that follows a script.

``python -m tests.search.searches FOLDER [KILLED_AT]`` runs it in a process of its own, which may kill itself.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.config import SearchSettings, Settings, load_settings
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.outcomes import OutcomeMatrix, QuestionInfo
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.data import SearchData
from mesa_pipeline.search.directions import open_directions
from mesa_pipeline.search.events import EventLog
from mesa_pipeline.search.loop import Search
from mesa_pipeline.search.proposers import Proposal, ProposalRequest
from mesa_pipeline.search.records import ArchiveEntry
from mesa_pipeline.search.store import SearchStore
from mesa_pipeline.types import Preview

REPOSITORY = Path(__file__).resolve().parents[2]
SETTINGS = load_settings(REPOSITORY / "params.yaml", environment={})
DOMAINS = ("Game", "WEB", "Text2SQL")
META = 'META = {"direction": "free", "hypothesis": "A test.", "parents": []}\n'


def table(prefix: str, episodes: int = 4, per_episode: int = 5, seed: int = 0) -> OutcomeMatrix:
    """Questions with labels and previews; scores are multiples of 1/64, so that sums are exact in any order."""
    rng = np.random.default_rng([seed, *prefix.encode()])
    questions = tuple(
        QuestionInfo(
            id=f"{prefix}{episode}#{k}",
            episode_id=f"{prefix}{episode}",
            text=f"{('Which', 'Why did', 'How many')[k % 3]} {prefix} of step {10 * episode + k} changed?",
            domain=DOMAINS[episode % 3],
            task_type="",
            qa_type="ABCD"[k % 4],
            steps=20 + k,
            previews={code: Preview(f"{code} saw {k}", k, 100 + k, None, (), (k,)) for code in subsets.STRUCTURE_CODES},
        )
        for episode in range(episodes)
        for k in range(per_episode)
    )
    shape = (len(questions), len(subsets.ALL_SUBSETS))
    tokens = 512.0 * np.array([subsets.size(mask) for mask in subsets.ALL_SUBSETS]) + rng.integers(0, 256, shape)
    return OutcomeMatrix(questions, rng.integers(0, 65, shape) / 64, tokens)


def search_settings(**changes: Any) -> SearchSettings:
    return SETTINGS.search.model_copy(update={"iterations": 4, **changes})


def search_data(
    train: OutcomeMatrix | None = None, validation: OutcomeMatrix | None = None, settings: SearchSettings | None = None
) -> SearchData:
    whole: Settings = SETTINGS.model_copy(update={"search": settings or search_settings()})
    return SearchData.of(train or table("lamp"), validation or table("door"), FitContext.of(whole, seed=3))


def reading(*codes: str, hypothesis: str = "A test.") -> str:
    """A policy that reads the same for every question."""
    meta = {"direction": "free", "hypothesis": hypothesis, "parents": ["all"]}
    return f"META = {meta!r}\ndef select(state, q):\n    return {list(codes)!r}\n"


def learning(key: str, price: int) -> str:
    """A policy that fits one subset to each value of a label, at a multiple of the token price."""
    return f"""{META}
def fit(rows, ctx):
    cells = {{}}
    for row in rows:
        worth = [y - {price} * ctx["lambda"] * t for y, t in zip(row["y"], row["tok"])]
        cells.setdefault(row["meta"].get("{key}", ""), []).append(worth)
    best = {{}}
    for cell in sorted(cells):
        means = [sum(column) for column in zip(*cells[cell])]
        best[cell] = ctx["subsets"][means.index(max(means))]
    return best
def select(state, q):
    return state.get(q["meta"].get("{key}", ""), ["S", "T"])
"""


INVALID: Mapping[str, tuple[str, str]] = {
    "no Python": ("def select(state, q:\n", "gate: .*not valid Python"),
    "empty": ("", "gate: .*select is missing"),
    "NUL": (reading("S") + "\x00", "gate: .*NUL"),
    "half a character": (reading("S") + "# \ud800", "gate: .*surrogate"),
    "forbidden": (META + "import os\ndef select(state, q):\n    return ['S']\n", "gate: "),
    "fit raises": (META + "def fit(rows, ctx):\n    return 1 // 0\ndef select(state, q):\n    return ['S']\n", "ZeroDivision"),
    "no JSON": (META + "def fit(rows, ctx):\n    return {1, 2}\ndef select(state, q):\n    return ['S']\n", "not JSON"),
    "nothing chosen": (META + "def select(state, q):\n    return []\n", "failed on"),
    "no structure": (META + "def select(state, q):\n    return ['S', 'Q']\n", "failed on"),
    "odd question": (META + "def select(state, q):\n    return ['S'] if q['meta']['domain'] else ['T']\n", r"failed on \d+ of"),
    "hash seed": (
        META
        + "def select(state, q):\n    return ['S', 'T'][: 1 + len([*{'a', 'bc', 'd', 'ef', *q['question'].split()}][0]) % 2]\n",
        "not deterministic",
    ),
    "memory": (
        META + "SEEN = []\ndef select(state, q):\n    SEEN.append(1)\n    return ['S'] if len(SEEN) % 2 else ['T']\n",
        "gate|not deterministic",
    ),
    "remembers": (
        META + "def fit(rows, ctx):\n    return [row['question'] for row in rows]\n" + reading("S").split("\n", 1)[1],
        "memorised",
    ),
    "recites": (
        META + "def select(state, q):\n    return ['S'] if 'Which lamp of step 10 changed?' == q['question'] else ['T']\n",
        "memorised",
    ),
}
"""Sources that are not valid, with what the reason must say."""


@dataclass
class Scripted:
    """A proposer that asks a function for the source and remembers what it was asked for."""

    write: Callable[[ProposalRequest], str]
    name: str = "scripted"
    trusted: bool = True
    requests: list[ProposalRequest] = field(default_factory=list)

    def propose(self, request: ProposalRequest) -> Proposal:
        self.requests.append(request)
        return Proposal(self.write(request), ({"role": "user", "content": f"seed {request.seed}"},), {"calls": 1})


def varied(request: ProposalRequest) -> str:
    """Good, bad and repeated sources, by the request's seed."""
    kind, draw = request.seed % 5, request.seed // 5
    if kind == 0:
        return list(INVALID.values())[draw % len(INVALID)][0]
    if kind in (1, 2):
        return learning(("domain", "qa_type", "task_type")[draw % 3], 1 + 40 * (draw // 3 % 5))
    return reading(*subsets.decode(1 + draw % 31))


def ready(folder: Path | SearchStore, proposer: Scripted | None = None, **changes: Any) -> Search:
    """A search in a folder; further arguments replace its parts."""
    settings = changes.pop("settings", search_settings())
    parts: dict[str, Any] = {
        "data": search_data(settings=settings),
        "store": folder if isinstance(folder, SearchStore) else SearchStore(folder),
        "proposer": proposer or Scripted(varied),
        "directions": open_directions(settings.directions),
        "sandbox": open_sandbox(SETTINGS.policies.sandbox),
        "settings": settings,
    }
    return Search(**{**parts, **changes})


def written(source: str) -> Callable[[ProposalRequest], str]:
    """The same source whatever is asked for."""
    return lambda request: source


def in_turn(*sources: str) -> Callable[[ProposalRequest], str]:
    """One source after the other, the last one for ever."""
    waiting: Iterator[str] = iter(sources)
    return lambda request: next(waiting, sources[-1])


def worth(objective: float, tokens: float = 0.0, score: float | None = None, n: int = 10) -> Evaluation:
    return Evaluation("p", "executable", n, objective if score is None else score, tokens, 1.0, objective, 0)


def entry(id: str, objective: float = 0.5, tokens: float = 0.0, **changes: Any) -> ArchiveEntry:
    """An entry of an archive, worth ``objective`` on validation."""
    iteration = 0 if id == "all" else int(id[:2])
    parts: dict[str, Any] = {
        "slot": None if id == "all" else "explore",
        "direction": None if id == "all" else "free",
        "parents": (),
        "hypothesis": "",
        "source": reading("S"),
        "train": worth(objective),
        "validation": worth(objective, tokens),
        "behaviour": id,
    }
    return ArchiveEntry(id=id, iteration=iteration, **{**parts, **changes})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class KilledLog(EventLog):
    """A log whose process is killed by ``kill`` after so many events."""

    def __init__(self, path: Path, events: int, kill: Callable[[], None]) -> None:
        super().__init__(path)
        self._left = events
        self._kill = kill

    def append(self, event: str, data: Mapping[str, Any]) -> None:
        if self._left == 0:
            self._kill()
        self._left -= 1
        super().append(event, data)


def killed_store(folder: Path, events: int, kill: Callable[[], None]) -> SearchStore:
    """A store that ``kill``s after so many events, when the files of the next one are written and it is not."""
    store = SearchStore(folder)
    store.events = KilledLog(folder / "events.jsonl", events, kill)
    return store


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    ready(killed_store(place, int(sys.argv[2]), _kill) if len(sys.argv) > 2 else place).run()
