"""What prefix caching saves a server in the sweep, on a workspace that has been swept with any reader.

Run ``python -m benchmarks.prefill WORKSPACE DATASET``; reads only. Prints a Markdown table, a line for the dataset and one for
each domain, in shares of the naive prefill:

- evidence: evidence tokens of all 31 prompts, as the report has it;
- question: whole prompts as the LLM reader words them, each distinct one once, with nothing kept from question to question;
- episode: the same with a cache that also keeps what an episode's questions have in common (instructions, task, and the summary
  where it is the same for all);
- best order: the evidence share under the best single order of sections for that line, which is named; each section counted as
  when read alone, without references to earlier ones, as is the share under the present order beside it;
- largest first: likewise, with an order of its own for every question.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.prefill import prefill
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.llm.prompts import Prompt
from mesa_pipeline.llm.tokens import QwenTokenCounter
from mesa_pipeline.reading.llm import NO_EVIDENCE, PROMPT
from mesa_pipeline.stages.storage import EpisodeEntry, read_evidence, read_manifest, read_outcomes, read_questions, read_task
from mesa_pipeline.subsets import ALL_SUBSETS, COMPOSE_ORDER, STRUCTURE_CODES, STRUCTURE_NAMES, encode

FIRST = COMPOSE_ORDER[0]


@dataclass(frozen=True)
class Cost:
    """Prompt tokens of some questions: all, and those new to a cache that lasts a question, or an episode."""

    naive: int
    question: int
    episode: int


@dataclass(frozen=True)
class Swept:
    """An episode: evidence tokens of its questions, shape ``(n, 31)``, and what their whole prompts cost."""

    domain: str
    tokens: np.ndarray
    cost: Cost


def swept(layout: Layout, entry: EpisodeEntry, counter: TokenCounter, only: str | None = None) -> Swept:
    """Read the outcomes of an episode, or of one of its questions, and count what the prompts hold beside evidence."""
    rows = {question.id: np.full(len(ALL_SUBSETS), np.nan) for question in read_questions(layout, entry.key)}
    for outcome in read_outcomes(layout, entry.key):
        rows[outcome.question_id][outcome.subset - 1] = outcome.tokens
    wanted = {question_id: row for question_id, row in rows.items() if only in (None, question_id)}
    whole = {question_id: row for question_id, row in wanted.items() if not np.isnan(row).any()}
    head, _, rest = Prompt.load(PROMPT).text.partition("$evidence")
    head_tokens = counter.count(Prompt(head).fill(task=read_task(layout, entry.key) or "(not given)"))
    texts = {question.id: question.text for question in read_questions(layout, entry.key)}
    tails = [counter.count(Prompt(rest).fill(question=texts[question_id])) for question_id in whole]
    tokens = np.array(list(whole.values())).reshape(-1, len(ALL_SUBSETS))
    first = read_evidence(layout, FIRST, STRUCTURE_NAMES[FIRST], entry.key)
    is_common = len({first[question_id].items for question_id in whole}) == 1
    return Swept(entry.domain, tokens, _cost(tokens, tails, head_tokens, is_common, counter.count(NO_EVIDENCE)))


def _cost(tokens: np.ndarray, tails: Sequence[int], head: int, is_common: bool, nothing: int) -> Cost:
    naive = question = 0
    for row, tail in zip(tokens, tails, strict=True):
        new = _new_tokens(row)
        distinct = row[new > 0]
        prompts = len(distinct) + int((row == 0).any())
        nothing_read = nothing * (prompts - len(distinct))
        naive += int(distinct.sum()) + nothing_read + prompts * (head + tail)
        question += int(new.sum()) + nothing_read + prompts * tail + head
    again = max(len(tokens) - 1, 0)
    common = head + (int(tokens[0, encode([FIRST]) - 1]) if is_common else 0)
    return Cost(naive, question, question - again * common)


def _new_tokens(row: np.ndarray) -> np.ndarray:
    """Tokens of every subset's last section, shape ``(31,)``."""
    return np.array([row[mask - 1] - (row[without - 1] if (without := _without_last(mask)) else 0.0) for mask in ALL_SUBSETS])


def _without_last(mask: int) -> int:
    last = next(code for code in reversed(COMPOSE_ORDER) if mask & encode([code]))
    return mask & ~encode([last])


def share_in_order(alone: np.ndarray) -> float:
    """Share of the naive prefill where sections stand in the order of the columns of ``alone``, shape ``(n, 5)``.

    Section k is new after each subset of the k before it, and stands in 16 prompts.
    """
    weights = 2.0 ** np.arange(alone.shape[1])
    return float((alone * weights).sum() / (16 * alone.sum()))


def line(name: str, episodes: Sequence[Swept]) -> str:
    """A line of the table."""
    tokens = np.concatenate([episode.tokens for episode in episodes])
    naive, question, episode = (
        sum(getattr(swept.cost, part) for swept in episodes) for part in ("naive", "question", "episode")
    )
    alone = {code: tokens[:, encode([code]) - 1] for code in STRUCTURE_CODES}
    shares = {
        order: share_in_order(np.column_stack([alone[code] for code in order])) for order in permutations(STRUCTURE_CODES)
    }
    best = min(shares, key=lambda order: (shares[order], order))
    largest = share_in_order(-np.sort(-np.column_stack(list(alone.values())), axis=1))
    means = " / ".join(f"{alone[code].mean():,.0f}" for code in COMPOSE_ORDER)
    return (
        f"| {name} | {len(tokens)} | {means} | {prefill(tokens).share:.3f} | {question / naive:.3f} | {episode / naive:.3f} "
        f"| {''.join(best)} {shares[best]:.3f} ({shares[COMPOSE_ORDER]:.3f}) | {largest:.3f} |"
    )


def lines(dataset: str, episodes: Sequence[Swept]) -> Iterable[str]:
    """The whole table."""
    sections = " / ".join(COMPOSE_ORDER)
    yield f"| data | questions | tokens {sections} | evidence | question | episode | best order | largest first |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    yield line(dataset, episodes)
    for domain in sorted({episode.domain for episode in episodes}):
        yield line(domain, [episode for episode in episodes if episode.domain == domain])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("dataset")
    arguments = parser.parse_args()
    layout = Layout(arguments.workspace, arguments.dataset)
    counter = QwenTokenCounter(load_settings(environment={}).llm.tokenizer)
    entries = [entry for entry in read_manifest(layout).episodes if layout.outcomes(entry.key).exists()]
    for shown in lines(arguments.dataset, [swept(layout, entry, counter) for entry in entries]):
        print(shown)


if __name__ == "__main__":
    main()
