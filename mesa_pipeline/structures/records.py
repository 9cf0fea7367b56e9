"""The one rendering of a step that every structure shares (paper, A.1: Serialize).

Trajectories stay structured everywhere; rendered text is never parsed back, because observations contain lines that look like
step headers.
"""

from typing import NamedTuple

from mesa_pipeline.types import Step


class StepRecord(NamedTuple):
    """A step as text, and whether something was cut out of it."""

    text: str
    truncated: bool


def clip(text: str, max_chars: int) -> StepRecord:
    """Keep the head and the tail of a text that is too long, with a marker that says how much is missing.

    The result has at most ``max_chars`` characters, marker included; two thirds of what is kept is the head.
    """
    if len(text) <= max_chars:
        return StepRecord(text, False)
    marker = f"\n[... {len(text) - max_chars} characters or more left out ...]\n"
    kept = max(max_chars - len(marker), 2)
    head = kept * 2 // 3
    return StepRecord(text[:head] + marker + text[len(text) - (kept - head) :], True)


def serialize_step(step: Step, max_chars: int | None = None) -> StepRecord:
    """Render step number, action and observation; absent parts are left out.

    Args:
        step: The step.
        max_chars: Longest record wanted; ``None`` for the whole text (for indexing, never for evidence).
    """
    lines = [f"Step {step.index}"]
    if step.action:
        lines.append(f"Action: {step.action}")
    if step.observation:
        lines.append(f"Observation: {step.observation}")
    if step.is_empty:
        lines.append("(no action, no observation)")
    text = "\n".join(lines)
    return StepRecord(text, False) if max_chars is None else clip(text, max_chars)
