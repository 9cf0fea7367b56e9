"""The five memory structures. To add one: a module here, a line in ``STRUCTURES``, a section in ``params.yaml``."""

from typing import Any

from mesa_pipeline.structures.base import MemoryStructure, StructureContext
from mesa_pipeline.structures.graph import GraphMemory
from mesa_pipeline.structures.raw import RawMemory
from mesa_pipeline.structures.summary import SummaryMemory
from mesa_pipeline.structures.temporal import TemporalMemory
from mesa_pipeline.structures.vector import VectorMemory

STRUCTURES: dict[str, type[MemoryStructure[Any]]] = {
    structure.code: structure for structure in (SummaryMemory, TemporalMemory, GraphMemory, VectorMemory, RawMemory)
}


def open_structures(context: StructureContext) -> dict[str, MemoryStructure[Any]]:
    """All structures by code, in the order S T G V R."""
    return {code: structure.create(context) for code, structure in STRUCTURES.items()}
