"""What models behind endpoints cost: every attempt is written down the moment it ends, whatever came of it.

Usage is recorded before a reply is looked at, so attempts that fail, or whose reply nobody can read, are counted too. Replies
from the cache cost nothing and are counted apart.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mesa_pipeline.llm.database import Database

Phase = Literal["build", "retrieve", "answer", "judge", "select", "propose", "embed"]
SCHEMA = """
create table if not exists attempts (
    id integer primary key, at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ')), phase text not null, model text not null,
    request text not null, outcome text not null, prompt_tokens integer not null, cached_tokens integer not null,
    completion_tokens integer not null, seconds real not null
);
create table if not exists replays (
    phase text not null, model text not null, replies integer not null, primary key (phase, model)
);
"""


@dataclass(frozen=True)
class Usage:
    """Tokens of a request as the server counts them, 0 where it does not say.

    Attributes:
        prompt_tokens: Of what was sent.
        cached_tokens: Of those, the ones it took from its prefix cache.
        completion_tokens: Of the reply.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Attempt:
    """One request to a model.

    Attributes:
        phase: What it was for.
        model: Name of the model.
        request: Fingerprint of the request.
        outcome: ``ok``, or what went wrong, in a line.
        seconds: Wall time.
        usage: Its tokens.
    """

    phase: Phase
    model: str
    request: str
    outcome: str
    seconds: float
    usage: Usage = Usage()


@dataclass(frozen=True)
class Spending:
    """Sums over the attempts of one phase with one model.

    Attributes:
        attempts: Requests sent, failed ones included.
        failed: Of those, the ones that brought no reply.
        replayed: Replies from the cache, which are no attempts.
        prompt_tokens: Of all attempts, as are the other sums.
        seconds: Of attempts that ran side by side, each counts in full.
    """

    phase: str
    model: str
    attempts: int
    failed: int
    replayed: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: float


class Ledger:
    """Attempts in a SQLite file; any number of threads and processes may write.

    Args:
        path: The file; made with its folder on first use.
    """

    def __init__(self, path: Path) -> None:
        self._database = Database(path, SCHEMA)

    def record(self, attempt: Attempt) -> None:
        """Write down an attempt.

        Raises:
            ArtifactError: The file cannot be written.
        """
        usage = attempt.usage
        row = (
            *(attempt.phase, attempt.model, attempt.request, attempt.outcome, attempt.seconds),
            *(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens),
        )
        columns = "phase, model, request, outcome, seconds, prompt_tokens, cached_tokens, completion_tokens"
        with self._database.open() as connection:
            connection.execute(f"insert into attempts ({columns}) values (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def record_replays(self, phase: Phase, model: str, replies: int = 1) -> None:
        """Count replies that came from the cache.

        Raises:
            ArtifactError: The file cannot be written.
        """
        statement = """
            insert into replays (phase, model, replies) values (?, ?, ?)
            on conflict (phase, model) do update set replies = replies + excluded.replies
        """
        with self._database.open() as connection:
            connection.execute(statement, (phase, model, replies))

    def spending(self) -> tuple[Spending, ...]:
        """Sums by phase and model, in that order.

        Raises:
            ArtifactError: The file cannot be read.
        """
        query = """
            select phase, model, sum(sent), sum(failed), sum(replayed), sum(prompt), sum(cached), sum(completion), sum(seconds)
            from (
                select phase, model, 1 as sent, outcome != 'ok' as failed, 0 as replayed, prompt_tokens as prompt,
                    cached_tokens as cached, completion_tokens as completion, seconds
                from attempts
                union all select phase, model, 0, 0, replies, 0, 0, 0, 0.0 from replays
            )
            group by phase, model order by phase, model
        """
        with self._database.open() as connection:
            return tuple(Spending(*row) for row in connection.execute(query))
