"""Summaries without a language model: what each step did and what changed, chosen by salience, quoted and anchored.

A step is told as ``Step 12: <action> -> <what is new in its observation>``; steps with nothing chosen are joined into
``Steps 13-17: <action>, <action>``, and cycles into one line. What the preceding step already showed is no news and is dropped,
so the line difference of two observations, whatever their format, is the state change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesa_pipeline.structures.actions import common_action, compact_action
from mesa_pipeline.structures.observation_units import Unit, shorten, split_units
from mesa_pipeline.types import Step

VERSION = 1
MAX_PERIOD = 4
DECAY = 0.75
LEAST_SCORE = 0.1
ACTION_CHARS = 200
SHORTEST_ACTION = 8
LINE_OVERHEAD = 14
NO_CHANGE = " [no change]"
NOTHING = "(nothing of note)"
ERROR = re.compile(
    r"\b(?:error|exception|traceback|fail(?:ed|ure|s)?|cannot|can't|unable|denied|invalid|illegal|not found|no such|timed? ?out"
    r"|undefined|warning|refused|rejected|nothing happens|does not exist|killed)\b|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
RESULT = re.compile(
    r"\b(?:exit code|passed|success\w*|created|saved|completed|finished|result|returned|total|score|reward|answer|found|updated"
    r"|deleted|added|removed|merged|pick up|picked|moved?|arrive[ds]?|opened?|closed?|inventory|carrying|win|won|lost|dead)\b",
    re.IGNORECASE,
)
TERM = re.compile(r"\w{3,40}")
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Candidate:
    position: int
    order: int
    unit: Unit
    score: float


@dataclass(slots=True)
class _Entry:
    """One line in the making: a step, or a run of steps that repeat earlier ones."""

    first: int
    last: int
    action: str
    news: list[Unit] = field(default_factory=list)
    unchanged: bool = False
    is_mute: bool = False

    @property
    def is_single(self) -> bool:
        return self.first == self.last

    @property
    def told(self) -> str:
        """What is said of the step when nothing of its observation is; nothing of a turn without an action of its own."""
        return "" if self.is_mute else (self.action or NOTHING) + (NO_CHANGE if self.unchanged else "")


class ExtractiveSummarizer:
    """Chooses, within a budget, what a reader of the segment should know.

    Args:
        max_chars: Most characters of one segment's summary.
        max_chars_per_step: Most characters quoted from one step's observation.
    """

    def __init__(self, max_chars: int, max_chars_per_step: int) -> None:
        self._max_chars = max_chars
        self._max_chars_per_step = max_chars_per_step

    def identity(self) -> Mapping[str, Any]:
        return {
            "kind": "extractive",
            "version": VERSION,
            "max_chars": self._max_chars,
            "max_chars_per_step": self._max_chars_per_step,
        }

    def summarize(self, task: str, steps: Sequence[Step], preceding: Step | None) -> str:
        """See ``summary.Summarizer``; every step is cited, but for turns of a dialogue of which nothing is quoted."""
        common = common_action(steps)
        entries = _entries(steps, preceding, 0 if common else self._action_limit(len(steps)))
        head = f"Every step: {shorten(common, ACTION_CHARS)}\n" if common else ""
        for entry in entries:
            entry.is_mute = bool(common) and not entry.unchanged
        told = sum(len(entry.told) + 2 + (0 if entry.is_single else LINE_OVERHEAD) for entry in entries if entry.told)
        budget = self._max_chars - len(head) - LINE_OVERHEAD - told
        chosen = self._choose(_candidates(entries, _terms(task)), entries, budget)
        return head + "\n".join(_lines(entries, chosen))

    def _action_limit(self, steps: int) -> int:
        """Actions may fill half the budget, and each is quoted at least by its first characters."""
        return max(SHORTEST_ACTION, min(ACTION_CHARS, self._max_chars // (2 * steps) - 2))

    def _choose(self, candidates: Sequence[_Candidate], entries: Sequence[_Entry], budget: int) -> dict[int, list[Unit]]:
        """Best units first while they fit; returns them by entry, in the order of the observation."""
        taken: dict[int, list[_Candidate]] = {}
        used: dict[int, int] = {}

        def joined(position: int) -> bool:
            return 0 <= position < len(entries) and entries[position].is_single and position not in used

        for candidate in candidates:
            position = candidate.position
            cost = len(candidate.unit.lead) + len(candidate.unit.text) + 3
            within_step = used.get(position, 0) + cost
            if position not in used:  # a line of its own, and perhaps one more for the neighbours it separates
                cost += LINE_OVERHEAD * (joined(position - 1) + joined(position + 1))
            if cost > budget or within_step > self._max_chars_per_step:
                continue
            budget -= cost
            used[position] = within_step
            taken.setdefault(position, []).append(candidate)
        return {
            position: [chosen.unit for chosen in sorted(found, key=lambda candidate: candidate.order)]
            for position, found in taken.items()
        }


def _entries(steps: Sequence[Step], preceding: Step | None, action_limit: int) -> list[_Entry]:
    entries: list[_Entry] = []
    known = {unit.key for unit in split_units(preceding.observation)} if preceding else set()
    position = 0
    while position < len(steps):
        period, length = _cycle(steps, position)
        if length:
            entries.append(_cycle_entry(steps[position : position + length], period, action_limit))
            position += length
            continue
        step = steps[position]
        units = split_units(step.observation)
        news = list({unit.key: unit for unit in units if unit.key not in known}.values())
        action = compact_action(step.action, action_limit) if action_limit else ""
        entries.append(_Entry(step.index, step.index, action, news, unchanged=bool(units) and not news))
        known = {unit.key for unit in units}
        position += 1
    return entries


def _cycle(steps: Sequence[Step], position: int) -> tuple[int, int]:
    """Shortest period, and number, of the steps from ``position`` on that repeat those one period before; (0, 0) for none."""
    for period in range(1, min(MAX_PERIOD, position) + 1):
        length = 0
        while position + length < len(steps) and _same(steps[position + length], steps[position + length - period]):
            length += 1
        if length >= max(2, period):
            return period, length
    return 0, 0


def _same(step: Step, other: Step) -> bool:
    return step.action == other.action and step.observation == other.observation


def _cycle_entry(steps: Sequence[Step], period: int, action_limit: int) -> _Entry:
    first, last = steps[0].index, steps[-1].index
    cycle = ", ".join(
        compact_action(step.action, max(action_limit, SHORTEST_ACTION)) or "(no action)" for step in steps[:period]
    )
    what = "the same observation" if period == 1 else f"the same {period} observations in turn"
    return _Entry(first, last, f"{cycle} repeated, {what} as before")


def _candidates(entries: Sequence[_Entry], task_terms: frozenset[str]) -> list[_Candidate]:
    """All news, best first; of one step's the next is worth less each time, and ties spread evenly over the segment."""
    candidates: list[_Candidate] = []
    for position, entry in enumerate(entries):
        action_terms = _terms(entry.action)
        forms: set[str] = set()
        scored: list[tuple[float, int]] = []
        for order, unit in enumerate(entry.news):
            score = _salience(unit.text, task_terms, action_terms) + 0.6 * (order == 0) + 0.3 * (order == len(entry.news) - 1)
            form = NUMBER.sub("0", unit.text)
            scored.append((score - 0.7 * (form in forms), order))
            forms.add(form)
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        for rank, (score, order) in enumerate(scored):
            if score < LEAST_SCORE:
                break
            candidates.append(_Candidate(position, order, entry.news[order], score * DECAY**rank))
    candidates.sort(key=lambda candidate: (-candidate.score, _spread(candidate.position), candidate.order))
    return candidates


def _salience(text: str, task_terms: frozenset[str], action_terms: frozenset[str]) -> float:
    """Errors first, then results, then what speaks of the task or the action; questions, labels and long listings last."""
    terms = _terms(text)
    commas = text.count(",")
    score = 1.0 + min(len(terms & task_terms), 3) / 3 + min(len(terms & action_terms), 3) / 3
    score += 2.0 * bool(ERROR.search(text)) + 1.0 * bool(RESULT.search(text))
    score += 0.4 * bool(NUMBER.search(text)) + 0.3 * any(word[:1].isupper() for word in text.split()[1:])
    score -= 0.8 * text.endswith("?") + 0.6 * (len(text) < 12) + 1.0 * (text.endswith(":") and len(text) < 40)
    return score - 2.0 * (commas > 8 and len(text) > 6 * commas)


def _terms(text: str) -> frozenset[str]:
    return frozenset(TERM.findall(text.lower()))


def _spread(position: int) -> float:
    """Van der Corput sequence: 0, 1/2, 1/4, 3/4, ... so that any prefix of the ranking covers the segment evenly."""
    value, weight = 0.0, 0.5
    while position:
        value += weight * (position & 1)
        position >>= 1
        weight /= 2
    return value


def _lines(entries: Sequence[_Entry], chosen: Mapping[int, list[Unit]]) -> Iterator[str]:
    waiting: list[_Entry] = []
    for position, entry in enumerate(entries):
        news = chosen.get(position)
        if news is None and entry.is_single and entry.told:
            waiting.append(entry)
            continue
        yield from _joined(waiting)
        waiting = []
        if news or entry.told:
            yield _line(entry, news or [])
    yield from _joined(waiting)


def _line(entry: _Entry, news: Sequence[Unit]) -> str:
    span = f"Step {entry.first}" if entry.is_single else f"Steps {entry.first}-{entry.last}"
    parts: list[str] = []
    lead = ""
    for unit in news:
        parts.append(unit.text if unit.lead == lead or not unit.lead else unit.lead + unit.text)
        lead = unit.lead or lead
    quoted = " | ".join(parts)
    return f"{span}: " + " -> ".join(part for part in (entry.action, quoted) if part)


def _joined(entries: Sequence[_Entry]) -> Iterator[str]:
    """One line for steps of which only the action is told, equal neighbours counted."""
    if not entries:
        return
    runs: list[list[Any]] = []
    for entry in entries:
        if runs and runs[-1][0] == entry.told:
            runs[-1][1] += 1
        else:
            runs.append([entry.told, 1])
    span = f"Step {entries[0].first}" if len(entries) == 1 else f"Steps {entries[0].first}-{entries[-1].first}"
    yield f"{span}: " + "; ".join(told if count == 1 else f"{told} x{count}" for told, count in runs)
