"""AMA-Bench in its Hugging Face row layout: one JSON object a line, one agent episode a row.

The format also occurs in older copies (ids as text, an em dash for a missing action, ``action_name`` and ``reasoning`` in the
place of action and observation); all are read alike.
"""

from collections.abc import Callable
from pathlib import Path

from mesa_pipeline.artifacts import file_sha256
from mesa_pipeline.config import AmaBenchSettings, DatasetsSettings
from mesa_pipeline.datasets.rows import (
    Fields,
    LoadedEpisodes,
    Row,
    check_increasing,
    collect_episodes,
    read_lines,
)
from mesa_pipeline.errors import DataError, MissingDependency
from mesa_pipeline.types import Episode, Question, Step, Trajectory

DATASET = "ama_bench"
QA_TYPES = {"A": "recall", "B": "causal", "C": "state-updating", "D": "abstraction"}

Download = Callable[[AmaBenchSettings], Path]


def load(path: Path | None, settings: DatasetsSettings, skip_invalid: bool) -> LoadedEpisodes:
    """Load AMA-Bench.

    Args:
        path: A JSON-lines file; ``None`` for the pinned revision on the Hugging Face hub.
        settings: Says which revision that is.
        skip_invalid: Leave bad rows out and list them, instead of stopping at the first.

    Raises:
        DataError: The file or one of its rows is not what it should be; names file, line, field, finding and remedy.
        MissingDependency: No path was given and the hub cannot be reached.
    """
    source = path if path is not None else fetch(settings.ama_bench)
    return collect_episodes(source, read_lines(source), _read_episode, skip_invalid=skip_invalid)


def download_from_hub(settings: AmaBenchSettings) -> Path:
    """The pinned file in the hub's local cache, downloaded first where it is not there yet.

    Raises:
        MissingDependency: The hub cannot be reached.
        DataError: The hub answers, but has no such file.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    name = f"{settings.file} of {settings.repo} at {settings.revision}"
    remedy = "or get the file elsewhere and pass it with --data"
    try:
        return Path(hf_hub_download(settings.repo, settings.file, repo_type="dataset", revision=settings.revision))
    except LocalEntryNotFoundError as error:
        raise MissingDependency(
            f"cannot download {name}: the Hugging Face hub cannot be reached; connect to the network, {remedy}"
        ) from error
    except HfHubHTTPError as error:
        raise DataError(
            f"the Hugging Face hub did not hand out {name} ({type(error).__name__}); "
            f"check datasets.ama_bench in the settings, {remedy}"
        ) from error
    except Exception as error:
        # Which errors a broken connection or a full disk raises depends on the hub client's version and its HTTP library.
        raise MissingDependency(
            f"downloading {name} broke off ({type(error).__name__}: {error}); run the same command again, {remedy}"
        ) from error


def fetch(settings: AmaBenchSettings, download: Download = download_from_hub) -> Path:
    """Download the pinned file and check that it is the one expected.

    Raises:
        DataError: Its SHA-256 is another; nothing of it is used.
    """
    path = download(settings)
    found = file_sha256(path)
    if found != settings.sha256:
        raise DataError(
            f"{path}: SHA-256 is {found}, expected {settings.sha256}; delete the file and try again, "
            "or, if you mean to use another revision, set datasets.ama_bench.sha256 to its hash"
        )
    return path


def _read_episode(row: Row) -> Episode:
    fields = row.fields()
    episode_id = fields.identifier("episode_id")
    turns = fields.objects("trajectory", "list the turns as objects with turn_idx, action and observation")
    pairs = fields.objects("qa_pairs", "list the questions as objects with question, answer and type, or write []")
    steps = check_increasing(map(_read_step, turns), fields.where, "trajectory[{position}].turn_idx")
    return Episode(
        id=episode_id,
        dataset=DATASET,
        domain=fields.text("domain", "name the domain: episodes are split and reported by it"),
        task_type=fields.text("task_type", "name the task type: episodes are split by it"),
        trajectory=Trajectory(episode_id, fields.optional_text("task"), steps),
        questions=tuple(_read_question(pair, f"{episode_id}#{number}") for number, pair in enumerate(pairs)),
    )


def _read_step(turn: Fields) -> Step:
    return Step(
        index=turn.whole_number("turn_idx", "number the turns from 0 in order"),
        action=turn.any_text("action", "action_name"),
        observation=turn.any_text("observation", "reasoning"),
    )


def _read_question(pair: Fields, question_id: str) -> Question:
    letter = pair.optional_text("type").strip()
    return Question(
        id=question_id,
        text=pair.text("question", "write the question's text, or remove the pair"),
        qa_type=QA_TYPES.get(letter.upper(), letter) or None,
        answer=pair.reference("answer", "give the reference answer: without one the question cannot be scored"),
    )
