"""What a thousand, a million and a billion trajectories need, computed from what one needs.

    python -m benchmarks.scale_on_paper

Prints the tables of docs/scaling.md; a test holds them equal. Nothing is run: change a unit cost below and print again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import click

HOUR = 3600.0
SIZES = (1_000, 1_000_000, 1_000_000_000)


@dataclass(frozen=True)
class Measured:
    """AMA-Bench's 86 development episodes under the default settings, and where each figure comes from."""

    episodes: int = 86
    steps: int = 6_233
    questions: int = 1_032
    summary_prompt_tokens: float = 6.9e6  # decision 0100; prompts whole
    summary_requests: int = 1_233
    graph_prompt_tokens: float = 6.4e6  # decision 0100; each passage is read once with a prefix cache
    graph_requests: int = 939
    check_prompt_tokens: float = 2.9e6  # decision 0100; one a question
    sweep_tokens_read_alone: int = 6_020 + 8_183 + 2_622 + 2_562 + 825  # "Prefill of the sweep", of one question
    sweep_new_share: float = 0.192  # the same, whole prompts
    passage_tokens: float = 6.3e6  # decision 0100; the trajectories' own text
    episode_bytes: int = 20_593_522  # files of a workspace
    summary_bytes: int = 1_690_060
    temporal_bytes: int = 28_882_650
    graph_bytes: int = 16_717_406
    vector_bytes: int = 29_507_385
    raw_bytes: int = 27_507_050
    result_bytes: int = 70_817_464 + 4_183_923 + 14_420_858  # evidence, previews and outcomes of all questions
    postings: int = 520_617  # terms of R's windows, each with its window
    manifest_bytes: int = 27_385


@dataclass(frozen=True)
class Unit:
    """Cost of one, measured elsewhere."""

    summary_step_seconds: float = 1.15 / 10_000  # "Steps per episode", one core
    temporal_step_seconds: float = 1.23 / 10_000
    graph_step_seconds: float = 6.49 / 10_000
    raw_step_seconds: float = 0.67 / 10_000
    vector_step_seconds: float = 340.42 / 10_000  # all-MiniLM-L6-v2
    postgres_vector_bytes: int = 1_681  # 384 dimensions, row and primary key (20,000 rows, PostgreSQL 18)
    postgres_indexed_vector_bytes: int = 3_721  # with its HNSW index (5,000 rows, m = 16)
    files_an_episode: int = 9  # the episode, five memories, arrays of three of them


@dataclass(frozen=True)
class Assumed:
    """What could not be measured here."""

    model_tokens_a_second: float = 2_149  # Qwen3-32B, bf16, vLLM 0.11, one H100 80 GB: GPUStack's lab, 4,000 in and 200 out
    embedder_tokens_a_second: float = (
        0.4 * 989e12 / (2 * 4e9)
    )  # Qwen3-Embedding-4B: 40% of an H100's bf16 peak, 2 operations a weight
    summary_reply_tokens: int = 600  # max_chars_per_segment is 2,400
    graph_reply_tokens: int = 2 * 1_024  # entities and triples, each at its limit
    check_reply_tokens: int = 64
    answer_reply_tokens: int = 150
    judge_tokens: int = 263  # prompt 255 (decision 0102), reply 8
    proposals: int = 30 * 3 * 5  # iterations, slots and split seeds of one search, whatever the size
    proposal_tokens: int = 15_000 + 6_000  # prompt (max_prompt_chars is 60,000) and reply, at their limits
    swept_trajectories: int = 1_000  # enough for the search; the policy then serves all
    elasticsearch_posting_bytes: int = 24  # feature and exact impact, never measured on a real server
    gpus: int = 8
    cores: int = 16 * 16  # sixteen workers of sixteen cores


@dataclass(frozen=True)
class Need:
    """What a number of trajectories needs.

    Attributes:
        trajectories: How many.
        build_tokens: Of the language model, for S and G.
        sweep_tokens: Of it, to check, answer and judge every question under 31 subsets.
        sample_tokens: The same where a sample is swept.
        embedding_tokens: Of the embedding model, for V.
        offline_core_hours: To build all five without any endpoint.
        bytes: On disk, by what they are of.
        postgres_bytes: V's vectors, searched exactly within an episode.
        indexed_bytes: The same in HNSW indexes.
        elasticsearch_bytes: R's windows.
        manifest_bytes: Of the file that lists the episodes.
        files: In the workspace, without results.
    """

    trajectories: int
    build_tokens: float
    sweep_tokens: float
    sample_tokens: float
    embedding_tokens: float
    offline_core_hours: float
    bytes: dict[str, float]
    postgres_bytes: float
    indexed_bytes: float
    elasticsearch_bytes: float
    manifest_bytes: float
    files: float


def need(trajectories: int, measured: Measured, unit: Unit, assumed: Assumed) -> Need:
    """Scale the cost of the measured episodes to a number of trajectories like them."""
    share = trajectories / measured.episodes
    steps = measured.steps * share
    build = (
        measured.summary_prompt_tokens
        + measured.summary_requests * assumed.summary_reply_tokens
        + measured.graph_prompt_tokens
        + measured.graph_requests * assumed.graph_reply_tokens
    )
    core_seconds = (
        unit.summary_step_seconds
        + unit.temporal_step_seconds
        + unit.graph_step_seconds
        + unit.raw_step_seconds
        + unit.vector_step_seconds
    )
    sweep = sweep_tokens(measured, assumed)
    memories = {"episodes": measured.episode_bytes, "S": measured.summary_bytes, "T": measured.temporal_bytes}
    memories |= {"G": measured.graph_bytes, "V": measured.vector_bytes, "R": measured.raw_bytes}
    swept = min(trajectories, assumed.swept_trajectories)
    return Need(
        trajectories=trajectories,
        build_tokens=build * share,
        sweep_tokens=sweep * share,
        sample_tokens=sweep * swept / measured.episodes,
        embedding_tokens=measured.passage_tokens * share,
        offline_core_hours=core_seconds * steps / HOUR,
        bytes={name: size * share for name, size in memories.items()}
        | {"results of the sample": measured.result_bytes * swept / measured.episodes},
        postgres_bytes=unit.postgres_vector_bytes * steps,
        indexed_bytes=unit.postgres_indexed_vector_bytes * steps,
        elasticsearch_bytes=assumed.elasticsearch_posting_bytes * measured.postings * share,
        manifest_bytes=measured.manifest_bytes * share,
        files=float(unit.files_an_episode * trajectories),
    )


def sweep_tokens(measured: Measured, assumed: Assumed) -> float:
    """Tokens to check, answer and judge all measured questions; those from the prefix cache are not counted."""
    subsets, each_in = 31, 16
    read = each_in * measured.sweep_tokens_read_alone * measured.sweep_new_share
    answered = subsets * (assumed.answer_reply_tokens + assumed.judge_tokens)
    checked = measured.check_prompt_tokens / measured.questions + assumed.check_reply_tokens
    return measured.questions * (read + answered + checked)


def tables(sizes: Sequence[int] = SIZES) -> str:
    """The tables of docs/scaling.md."""
    measured, unit, assumed = Measured(), Unit(), Assumed()
    needs = [need(size, measured, unit, assumed) for size in sizes]
    head = ["| | " + " | ".join(f"{size:,}" for size in sizes) + " |", "| --- |" + " --- |" * len(sizes)]
    return "\n".join([*head, *(f"| {name} | {' | '.join(row)} |" for name, row in rows(needs, measured, assumed).items())])


def rows(needs: Sequence[Need], measured: Measured, assumed: Assumed) -> dict[str, list[str]]:
    """The cells of each line, a column for each size."""
    gpu = assumed.model_tokens_a_second * HOUR
    embedding = assumed.embedder_tokens_a_second * HOUR
    steps = [measured.steps / measured.episodes * n.trajectories for n in needs]
    found = {
        "steps": [counted(s) for s in steps],
        "model tokens: build S and G": [counted(n.build_tokens) for n in needs],
        "model tokens: sweep all questions": [counted(n.sweep_tokens) for n in needs],
        f"model tokens: sweep {assumed.swept_trajectories:,} trajectories": [counted(n.sample_tokens) for n in needs],
        "embedding tokens: V": [counted(n.embedding_tokens) for n in needs],
        "GPU hours: build S and G": [counted(n.build_tokens / gpu) for n in needs],
        "GPU hours: embed V": [counted(n.embedding_tokens / embedding) for n in needs],
        "GPU hours: sweep all questions": [counted(n.sweep_tokens / gpu) for n in needs],
        f"GPU hours: sweep {assumed.swept_trajectories:,} trajectories": [counted(n.sample_tokens / gpu) for n in needs],
        "GPU hours: search": [counted(assumed.proposals * assumed.proposal_tokens / gpu) for _ in needs],
        f"wall time: build, {assumed.gpus} GPUs": [
            lasting((n.build_tokens / gpu + n.embedding_tokens / embedding) / assumed.gpus) for n in needs
        ],
        "core hours: build without any endpoint": [counted(n.offline_core_hours) for n in needs],
        f"wall time: the same, {assumed.cores} cores": [lasting(n.offline_core_hours / assumed.cores) for n in needs],
    }
    found |= {f"bytes: {name}": [sized(n.bytes[name]) for n in needs] for name in needs[0].bytes}
    return found | {
        "bytes: all of it": [sized(sum(n.bytes.values())) for n in needs],
        "files": [counted(n.files) for n in needs],
        "manifest": [sized(n.manifest_bytes) for n in needs],
        "PostgreSQL: V, exact": [sized(n.postgres_bytes) for n in needs],
        "PostgreSQL: V, all in HNSW": [sized(n.indexed_bytes) for n in needs],
        "Elasticsearch: R": [sized(n.elasticsearch_bytes) for n in needs],
    }


def counted(number: float) -> str:
    """Two significant digits and a unit a person reads at a glance."""
    return scaled(number, ("", " thousand", " million", " billion", " trillion", " quadrillion"))


def sized(number: float) -> str:
    return scaled(number, (" B", " kB", " MB", " GB", " TB", " PB"))


def scaled(number: float, units: Sequence[str]) -> str:
    power = 0
    while number >= 1000 and power < len(units) - 1:
        number, power = number / 1000, power + 1
    return f"{float(f'{number:.2g}'):g}{units[power]}"


def lasting(hours: float) -> str:
    for limit, divisor, name in (
        (1 / 60, 1 / 3600, "seconds"),
        (1, 1 / 60, "minutes"),
        (48, 1, "hours"),
        (24 * 365, 24, "days"),
    ):
        if hours < limit:
            return f"{float(f'{hours / divisor:.2g}'):g} {name}"
    return f"{float(f'{hours / 24 / 365:.2g}'):g} years"


@click.command()
def main() -> None:
    """Print the tables."""
    click.echo(tables())


if __name__ == "__main__":
    main()
