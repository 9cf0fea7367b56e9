"""The systems MESA is compared with. To add one: a module here, a line in ``BASELINES``, a section in ``params.yaml``."""

from collections.abc import Mapping
from typing import Any

from mesa_pipeline.baselines.a_mem import AMem
from mesa_pipeline.baselines.ama_agent import AmaAgent
from mesa_pipeline.baselines.base import Baseline, BaselineContext
from mesa_pipeline.baselines.bm25 import Bm25
from mesa_pipeline.baselines.e_mem import EMem
from mesa_pipeline.baselines.flat_dense import FlatDense
from mesa_pipeline.baselines.hindsight import Hindsight
from mesa_pipeline.baselines.hipporag import HippoRag
from mesa_pipeline.baselines.long_context import LongContext
from mesa_pipeline.baselines.mem0 import Mem0
from mesa_pipeline.baselines.memgpt import MemGpt
from mesa_pipeline.baselines.memorag import MemoRag

BASELINES: Mapping[str, type[Baseline[Any]]] = {
    baseline.code: baseline
    for baseline in (
        LongContext,
        Bm25,
        FlatDense,
        MemGpt,
        HippoRag,
        Mem0,
        AMem,
        MemoRag,
        Hindsight,
        EMem,
        AmaAgent,
    )
}
"""In the order of the paper's tables."""


def open_baselines(context: BaselineContext) -> dict[str, Baseline[Any]]:
    """All baselines by code."""
    return {code: baseline.create(context) for code, baseline in BASELINES.items()}


__all__ = ["BASELINES", "Baseline", "BaselineContext", "open_baselines"]
