"""What it costs to evaluate one policy: confined children that take all questions at once, beside a process per question.

Run ``python benchmarks/policy_evaluation.py``. Both sides run the same source on the same made-up rows and questions: a policy
that counts words of the training questions by best subset and looks the question's words up. The naive side starts an
interpreter for each question, unconfined, hands it source, state and question as JSON and reads one reply; a sample of it is
timed and scaled to all questions. Both must choose alike.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mesa_pipeline.config import load_settings
from mesa_pipeline.policies.sandbox import Reply, Sandbox, State
from mesa_pipeline.subsets import ALL_SUBSETS, STRUCTURE_CODES, encode

SEED = 0
WORDS = [f"word{k}" for k in range(400)]
NOTHING = "def select(state, q):\n    return ['S']\n"
POLICY = """
def fit(rows, ctx):
    counts = {}
    for row in rows:
        best = max(range(31), key=lambda k: row["y"][k] - ctx["lambda"] * row["tok"][k])
        for word in row["question"].split():
            counts.setdefault(word, [0] * 31)[best] += 1
    return counts

def select(state, q):
    votes = [0] * 31
    for word in q["question"].split():
        for k, count in enumerate(state.get(word, ())):
            votes[k] += count
    for code, preview in q["previews"].items():
        votes[0] += preview["tokens"] > 10**6 and "never" in preview["text"]
    mask = votes.index(max(votes)) + 1
    return [code for k, code in enumerate("STGVR") if mask >> k & 1]
"""
NAIVE = """
import json, sys
job = json.load(sys.stdin)
names = {}
exec(job["source"], names)
json.dump(names["select"](job["state"], job["question"]), sys.stdout)
"""


@dataclass(frozen=True)
class Workload:
    """Training rows and questions as the sandbox takes them, and the questions one by one."""

    rows: bytes
    questions: list[dict[str, Any]]

    @property
    def batch(self) -> bytes:
        return json.dumps(self.questions).encode()


def workload(rows: int, questions: int, preview_chars: int) -> Workload:
    """Questions of random words with previews of five structures; rows with 31 scores and token counts besides."""
    rng = random.Random(SEED)

    def question() -> dict[str, Any]:
        preview = {
            "n_items": 5,
            "tokens": 900,
            "top_score": 3.5,
            "scores": [3.5, 2.0, 1.5, 1.0, 0.5],
            "step_ids": list(range(32)),
        }
        text = " ".join(rng.choices(WORDS, k=preview_chars // 6))[:preview_chars]
        previews = {code: {**preview, "text": text} for code in STRUCTURE_CODES}
        return {"question": " ".join(rng.choices(WORDS, k=12)), "meta": {"domain": "Game"}, "steps": 60, "previews": previews}

    def row() -> dict[str, Any]:
        outcomes = {"y": [rng.random() for _ in ALL_SUBSETS], "tok": [rng.randrange(1, 20_000) for _ in ALL_SUBSETS]}
        return {**question(), **outcomes}

    return Workload(json.dumps([row() for _ in range(rows)]).encode(), [question() for _ in range(questions)])


def naive(state: State, question: dict[str, Any]) -> Reply:
    """One question in an interpreter of its own."""
    job = json.dumps({"source": POLICY, "state": state, "question": question}).encode()
    done = subprocess.run([sys.executable, "-I", "-c", NAIVE], input=job, capture_output=True, check=True)
    return Reply(encode(json.loads(done.stdout)))


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Median wall time of a call, in seconds."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def main() -> None:
    """Time both ways in one run and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--preview-chars", type=int, default=200, help="of each of the five previews of a question")
    parser.add_argument("--sample", type=int, default=20, help="questions the naive loop is timed on")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    work = workload(arguments.rows, arguments.questions, arguments.preview_chars)
    batch, context = work.batch, {"lambda": 1e-6}
    with Sandbox(load_settings().policies.sandbox) as sandbox:
        started = time.perf_counter()
        confinement = sandbox.confinement
        start = time.perf_counter() - started
        empty = seconds(lambda: sandbox.select(NOTHING, {}, b"[]"), arguments.repeats)
        state = sandbox.fit(POLICY, work.rows, context)
        fit = seconds(lambda: sandbox.fit(POLICY, work.rows, context), arguments.repeats)
        replies = sandbox.select(POLICY, state, batch)
        select = seconds(lambda: sandbox.select(POLICY, state, batch), arguments.repeats)
    started = time.perf_counter()
    naive_replies = [naive(state, question) for question in work.questions[: arguments.sample]]
    scaled = (time.perf_counter() - started) / arguments.sample * arguments.questions
    if naive_replies != replies[: arguments.sample]:
        raise SystemExit("the two ways chose differently")
    print(f"sandbox: {confinement}; median of {arguments.repeats} runs")
    print(f"start of the worker and self-test, once   {start * 1e3:9.1f} ms")
    print(f"fork, lockdown, load, reply               {empty * 1e3:9.1f} ms")
    print(f"fit, {arguments.rows:,} rows, {len(work.rows) / 1e6:.1f} MB             {fit * 1e3:9.1f} ms")
    print(f"select, {arguments.questions:,} questions, {len(batch) / 1e6:.1f} MB     {select * 1e3:9.1f} ms")
    print(f"a process per question, {arguments.sample} timed and scaled {scaled * 1e3:8.0f} ms")
    print(f"ratio for select: {scaled / select:,.0f} times faster, same choices")


if __name__ == "__main__":
    main()
