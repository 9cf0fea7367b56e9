"""Previews: the glimpse of each structure's evidence that a policy may choose by (paper, Appendix D)."""

from mesa_pipeline.config import PreviewsSettings
from mesa_pipeline.llm import TokenCounter
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.subsets import encode
from mesa_pipeline.types import Evidence, Preview

PREVIEWS_VERSION = 1
ITEM_BREAK = "\n"


def preview(evidence: Evidence, settings: PreviewsSettings, counter: TokenCounter) -> Preview:
    """Glimpse of what one structure returned for one question; its tokens are those of the structure read alone."""
    scores = tuple(item.score for item in evidence.items if item.score is not None)
    steps = sorted({step for item in evidence.items for step in item.steps})
    code = evidence.structure
    return Preview(
        text=_beginning(evidence, settings.max_chars),
        n_items=len(evidence.items),
        tokens=Composer({code: evidence}, counter).compose(encode([code])).tokens,
        top_score=max(scores, default=None),
        scores=scores[: settings.max_scores],
        step_ids=tuple(steps[: settings.max_steps]),
    )


def _beginning(evidence: Evidence, max_chars: int) -> str:
    """The first characters of the items one after the other, without joining more of them than are needed."""
    parts: list[str] = []
    room = max_chars
    for item in evidence.items:
        if room <= 0:
            break
        parts.append(item.text[:room])
        room -= len(parts[-1]) + len(ITEM_BREAK)
    return ITEM_BREAK.join(parts)[:max_chars]
