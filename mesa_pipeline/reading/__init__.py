"""From evidence to an answer."""

from collections.abc import Mapping
from typing import Any, Protocol

from mesa_pipeline.types import Answer, ComposedEvidence


class Reader(Protocol):
    """The frozen answer model F (paper, Eq. 5).

    ``answer`` sees the question, the task and composed evidence: no label, no reference answer, no other question.
    Equal arguments give an equal answer, in any order of calls. It quotes or states only what the evidence supports; with empty
    evidence the answer is empty. It never raises for one question: a failure is an ``Answer`` with ``error`` set.
    """

    @property
    def name(self) -> str: ...

    def identity(self) -> Mapping[str, Any]:
        """All that changes an answer (parameters, model names, a version): JSON-able."""
        ...

    def answer(self, question: str, task: str, composed: ComposedEvidence) -> Answer: ...
