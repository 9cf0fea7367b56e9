"""How episodes, memories, evidence and outcomes stand in their artifacts. Nothing here decides what is current."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mesa_pipeline.artifacts import (
    Layout,
    Record,
    decode_arrays,
    encode_arrays,
    fingerprint,
    read_header,
    read_json_as,
    read_records,
    write_bytes,
    write_records,
)
from mesa_pipeline.artifacts.versions import UNFINISHED
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.outcomes import QuestionInfo
from mesa_pipeline.stores import Place
from mesa_pipeline.structures.base import MemorySystem, StoredMemory
from mesa_pipeline.subsets import STRUCTURE_NAMES
from mesa_pipeline.types import Episode, Evidence, EvidenceItem, Outcome, Preview, Question, Step, Trajectory

EPISODE_SUFFIXES = {".jsonl", ".npz", *UNFINISHED}


@dataclass(frozen=True)
class EpisodeEntry:
    """One episode's line in the manifest: all that a stage needs to know without opening it.

    ``trajectory`` and ``questions`` are fingerprints, so a changed question does not rebuild a memory.
    """

    id: str
    key: str
    domain: str
    task_type: str
    steps: int
    question_count: int
    qa_types: tuple[str, ...]
    trajectory: str
    questions: str


@dataclass(frozen=True)
class Manifest:
    """What ``mesa ingest`` made."""

    fingerprint: str
    dataset: str
    episodes: tuple[EpisodeEntry, ...]
    skipped: tuple[str, ...]

    @property
    def question_count(self) -> int:
        return sum(entry.question_count for entry in self.episodes)

    def entries(self, ids: Iterable[str]) -> tuple[EpisodeEntry, ...]:
        """The entries of some episodes, in manifest order.

        Raises:
            ArtifactError: An id is not in the manifest.
        """
        wanted = set(ids)
        missing = wanted - {entry.id for entry in self.episodes}
        if missing:
            raise ArtifactError(f"episodes {sorted(missing)} are not in the data any more; run `mesa split` again")
        return tuple(entry for entry in self.episodes if entry.id in wanted)


def trajectory_fingerprint(trajectory: Trajectory) -> str:
    steps = [[step.index, step.action, step.observation] for step in trajectory.steps]
    return fingerprint("trajectory", trajectory.task, trajectory.kind, steps)


def questions_fingerprint(questions: Sequence[Question]) -> str:
    return fingerprint("questions", [[q.id, q.text, q.qa_type, q.answer] for q in questions])


def manifest_entry(episode: Episode, key: str) -> EpisodeEntry:
    return EpisodeEntry(
        id=episode.id,
        key=key,
        domain=episode.domain,
        task_type=episode.task_type,
        steps=len(episode.trajectory.steps),
        question_count=len(episode.questions),
        qa_types=tuple(sorted({q.qa_type for q in episode.questions if q.qa_type is not None})),
        trajectory=trajectory_fingerprint(episode.trajectory),
        questions=questions_fingerprint(episode.questions),
    )


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    return asdict(manifest)


def read_manifest(layout: Layout) -> Manifest:
    """The manifest of a dataset.

    Raises:
        ArtifactError: ``mesa ingest`` has not run yet, or another version made it.
    """
    return read_json_as(_manifest, layout.manifest, f"mesa ingest --dataset {layout.dataset}")


def write_episode(layout: Layout, episode: Episode, entry: EpisodeEntry) -> None:
    """Header, then the questions, then one record a step: questions can be read without reading the trajectory."""
    header = {
        "fingerprint": fingerprint(entry.trajectory, entry.questions, entry.domain, entry.task_type),
        "id": episode.id,
        "domain": episode.domain,
        "task_type": episode.task_type,
        "task": episode.trajectory.task,
        "kind": episode.trajectory.kind,
    }
    steps: Iterable[Record] = ({"i": s.index, "a": s.action, "o": s.observation} for s in episode.trajectory.steps)
    write_records(layout.episode(entry.key), header, [{"questions": [asdict(q) for q in episode.questions]}, *steps])


def read_episode(layout: Layout, key: str) -> Episode:
    """A whole episode.

    Raises:
        ArtifactError: It is missing or damaged.
    """
    path = layout.episode(key)
    records = read_records(path, "mesa ingest")
    questions = _questions(next(records))
    header = read_header(path)
    assert header is not None
    steps = tuple(Step(record["i"], record["a"], record["o"]) for record in records)
    trajectory = Trajectory(header["id"], header["task"], steps, header["kind"])
    return Episode(header["id"], layout.dataset, header["domain"], header["task_type"], trajectory, questions)


def read_questions(layout: Layout, key: str) -> tuple[Question, ...]:
    """The questions of an episode, without reading its trajectory."""
    return _questions(next(read_records(layout.episode(key), "mesa ingest")))


def read_task(layout: Layout, key: str) -> str:
    """The task text of an episode, without reading its trajectory.

    Raises:
        ArtifactError: The episode is missing.
    """
    header = read_header(layout.episode(key))
    if header is None:
        raise ArtifactError(f"{layout.episode(key)} is not there; make it with `mesa ingest`")
    return str(header["task"])


def question_infos(layout: Layout, entry: EpisodeEntry) -> tuple[QuestionInfo, ...]:
    """What may be known of an episode's questions before they are answered.

    Raises:
        ArtifactError: The episode or a preview of its evidence is missing.
    """
    previews = {code: read_previews(layout, code, name, entry.key) for code, name in STRUCTURE_NAMES.items()}
    return tuple(
        QuestionInfo(
            id=q.id,
            episode_id=entry.id,
            text=q.text,
            domain=entry.domain,
            task_type=entry.task_type,
            qa_type=q.qa_type,
            steps=entry.steps,
            previews={code: found[q.id] for code, found in previews.items()},
        )
        for q in read_questions(layout, entry.key)
    )


def write_memory(layout: Layout, structure: MemorySystem[Any], key: str, memory: Any, header: Record) -> None:
    """Arrays first, then the records file whose header vouches for them."""
    stored = structure.encode(memory)
    path = layout.memory(structure.name, key)
    arrays = encode_arrays(stored.arrays) if stored.arrays else b""
    if arrays:
        write_bytes(path.with_suffix(".npz"), arrays)
    write_records(path, {**header, "array_sha256": _sha256(arrays)}, [stored.payload])


def read_memory(layout: Layout, structure: MemorySystem[Any], key: str) -> Any:
    """A built memory.

    Raises:
        ArtifactError: It is missing, damaged, or was made with something this structure refuses.
    """
    path = layout.memory(structure.name, key)
    command = f"mesa build --structure {structure.code}"
    payload = next(read_records(path, command))
    arrays_path = path.with_suffix(".npz")
    arrays = arrays_path.read_bytes() if arrays_path.exists() else b""
    header = read_header(path) or {}
    if header.get("array_sha256", _sha256(arrays)) != _sha256(arrays):
        raise ArtifactError(f"{arrays_path} is not what was stored with {path.name}; delete both and run `{command}`")
    return structure.decode(StoredMemory(payload, decode_arrays(arrays) if arrays else {}))


def place_of(layout: Layout, structure: MemorySystem[Any], entry: EpisodeEntry) -> Place:
    """Where a server keeps its copy of an episode's memory."""
    return Place(layout.dataset, structure.name, entry.key, structure.memory_fingerprint(entry.trajectory))


def remove_others(folder: Path, manifest: Manifest) -> None:
    """Delete artifacts of episodes that are no longer in the data, and what a killed process was writing; none writes now."""
    keys = {entry.key for entry in manifest.episodes}
    for path in folder.glob("*"):
        if path.suffix in EPISODE_SUFFIXES and path.name.partition(".")[0] not in keys:
            path.unlink()


def evidence_record(question_id: str, evidence: Evidence) -> Record:
    items = [{"text": i.text, "steps": list(i.steps), "score": i.score, "is_record": i.is_record} for i in evidence.items]
    return {"question_id": question_id, "items": items, "truncated": evidence.truncated}


def read_evidence(layout: Layout, code: str, name: str, key: str) -> dict[str, Evidence]:
    """One structure's evidence for every question of an episode, by question id."""
    records = read_records(layout.evidence(name, key), f"mesa retrieve --structure {code}")
    return {record["question_id"]: _evidence(code, record) for record in records}


def preview_record(question_id: str, preview: Preview) -> Record:
    return {"question_id": question_id, **asdict(preview)}


def read_previews(layout: Layout, code: str, name: str, key: str) -> dict[str, Preview]:
    """One structure's previews for every question of an episode, by question id."""
    records = read_records(layout.preview(name, key), f"mesa retrieve --structure {code}")
    return {record.pop("question_id"): _preview(record) for record in records}


def outcome_record(outcome: Outcome) -> Record:
    return asdict(outcome)


def read_outcomes(layout: Layout, key: str) -> list[Outcome]:
    """All outcomes of an episode."""
    return [Outcome(**record) for record in read_records(layout.outcomes(key), "mesa sweep")]


def _manifest(value: Record) -> Manifest:
    episodes = tuple(EpisodeEntry(**{**entry, "qa_types": tuple(entry["qa_types"])}) for entry in value["episodes"])
    return Manifest(value["fingerprint"], value["dataset"], episodes, tuple(value["skipped"]))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _questions(record: Record) -> tuple[Question, ...]:
    return tuple(Question(**{**q, "annotated_steps": tuple(q["annotated_steps"])}) for q in record["questions"])


def _preview(record: Record) -> Preview:
    return Preview(**{**record, "scores": tuple(record["scores"]), "step_ids": tuple(record["step_ids"])})


def _evidence(code: str, record: Record) -> Evidence:
    items = tuple(EvidenceItem(i["text"], tuple(i["steps"]), i["score"], i["is_record"]) for i in record["items"])
    return Evidence(code, items, record["truncated"])
