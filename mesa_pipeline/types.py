"""The records every part of the system speaks in (paper, Appendix A).

All are frozen. ``None`` means "absent" for optional text; the loaders have already turned the data's other ways of saying
so (an empty string, an em dash standing alone) into ``""`` for actions and observations.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

TrajectoryKind = Literal["agent", "dialogue"]
State: TypeAlias = Any
"""What a policy's ``fit`` learnt: any JSON value."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action and the observation recorded with it; ``index`` is the data's own (AMA-Bench counts from zero)."""

    index: int
    action: str
    observation: str

    @property
    def is_empty(self) -> bool:
        return not self.action and not self.observation


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An interaction history. Step indices strictly increase; a dialogue is a trajectory whose steps are its turns."""

    id: str
    task: str
    steps: tuple[Step, ...]
    kind: TrajectoryKind = "agent"

    @property
    def last_index(self) -> int:
        """Index of the last step; -1 for an empty trajectory."""
        return self.steps[-1].index if self.steps else -1


@dataclass(frozen=True, slots=True)
class Question:
    """A question over one episode.

    ``id`` is positional (``<episode>#<k>``), because texts repeat. ``answer`` is the reference and is ``None`` for a
    person's own question. ``annotated_steps`` are the step indices a benchmark's annotators marked as evidence; they serve to
    measure retrieval and are seen by no structure, reader or policy.
    """

    id: str
    text: str
    qa_type: str | None = None
    answer: str | None = None
    annotated_steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """A trajectory with its questions: the unit of splitting, storing and resuming."""

    id: str
    dataset: str
    domain: str
    task_type: str
    trajectory: Trajectory
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One retrieved piece.

    ``steps`` are the indices of the steps the text speaks of, ascending. ``is_record`` says that the text is exactly the
    serialised records of those steps (T, V, R), so that compose can refer to them instead of repeating them.
    """

    text: str
    steps: tuple[int, ...] = ()
    score: float | None = None
    is_record: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one structure, or another memory system, returns for one question; empty when it has nothing.

    Attributes:
        structure: Code of the structure.
        items: Pieces, in the order they are to be read.
        truncated: Some step's text was clipped.
        draft: The answer that the system itself arrived at while it searched; the structures have none.
    """

    structure: str
    items: tuple[EvidenceItem, ...] = ()
    truncated: bool = False
    draft: str | None = None

    @property
    def is_empty(self) -> bool:
        return not self.items


@dataclass(frozen=True, slots=True)
class Preview:
    """What a policy may see of one structure's evidence before anything is read (paper, Appendix D).

    Attributes:
        text: Beginning of the evidence.
        n_items: Pieces retrieved; 0 where the structure has nothing for the question.
        tokens: Evidence tokens of the structure read alone.
        top_score: Highest retrieval score; ``None`` where the structure does not score. Scales differ between structures.
        scores: The first pieces' retrieval scores, in reading order.
        step_ids: The first steps the evidence speaks of, ascending.
    """

    text: str
    n_items: int
    tokens: int
    top_score: float | None
    scores: tuple[float, ...]
    step_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One structure's evidence as it stands in a composed prompt, with its share of the evidence tokens."""

    structure: str
    text: str
    tokens: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ComposedEvidence:
    """The sections of one subset, in the fixed order S R V T G; empty when no selected structure returned anything."""

    sections: tuple[Section, ...] = ()

    @property
    def text(self) -> str:
        return "".join(section.text for section in self.sections)

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)


@dataclass(frozen=True, slots=True)
class Answer:
    """A reader's reply. ``error`` is set, and ``text`` empty, when the reader failed: a failure is not a wrong answer."""

    text: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One cell of the outcome table: what reading ``subset`` was worth for one question (paper, Eq. 6).

    Attributes:
        question_id: Id of the question.
        subset: Bit mask over the structures (see ``mesa_pipeline.subsets``), 1..31.
        score: Reward in [0, 1], higher is better; ``None`` when unscored (reader or judge failed), never a silent 0.
        tokens: Evidence tokens of the composed evidence.
        answer: The reader's answer.
        error: Why there is no score.
        judge_reply: The judge's own words, where a language model judged.
    """

    question_id: str
    subset: int
    score: float | None
    tokens: int
    answer: str
    error: str | None = None
    judge_reply: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a stage did, for the terminal, ``--json`` and Dagster metadata alike.

    Attributes:
        stage: Name of the stage.
        made: Units made by this call.
        kept: Units found valid and left alone.
        failed: One line for each unit that failed.
        seconds: Wall time of the call.
        facts: Further figures worth showing, by name.
    """

    stage: str
    made: int
    kept: int
    seconds: float
    failed: tuple[str, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)

    def with_part(self, part: "Summary") -> "Summary":
        """This summary with what a later part of the same stage did as facts, and its failures and seconds counted in."""
        facts = {**self.facts, f"{part.stage}: made": part.made, f"{part.stage}: kept": part.kept}
        return replace(self, seconds=self.seconds + part.seconds, failed=(*self.failed, *part.failed), facts=facts)
