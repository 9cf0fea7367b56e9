"""What the reports on compared systems are made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from mesa_pipeline.datasets import locomo
from mesa_pipeline.evaluation.candidates import CandidateScore
from mesa_pipeline.reports.findings import GroupFinding, group_findings
from mesa_pipeline.reports.inputs import ComparedSystems, ReportInputs
from mesa_pipeline.reports.looks import Look, winner_looks
from mesa_pipeline.reports.paper_figures import DATASETS, OVERALL, PaperFigure, paper_figure


class Winners(NamedTuple):
    """The best subsets by domain and by capability, and how they are drawn in both."""

    domains: tuple[GroupFinding, ...]
    capabilities: tuple[GroupFinding, ...]
    looks: Mapping[int, Look]


@dataclass(frozen=True)
class ComparedInputs:
    """MESA and the systems that were run beside it, on one dataset.

    Attributes:
        report: What the dataset's own report is made from, with its analyses; at least one policy was tested.
        systems: The systems side by side.
        improvements: For the seed of a search that is drawn, its improvements on test questions; empty where they were not
            looked at.
    """

    report: ReportInputs
    systems: ComparedSystems
    improvements: Mapping[int, tuple[CandidateScore, ...]] = field(default_factory=dict)

    @cached_property
    def winners(self) -> Winners:
        """Over all swept questions."""
        matrix, settings = self.report.matrix, self.report.evaluation
        domains = group_findings(matrix, lambda question: question.domain, settings)
        capabilities = group_findings(matrix, lambda question: question.qa_type, settings)
        return Winners(domains, capabilities, winner_looks([*domains, *capabilities]))

    @property
    def is_locomo(self) -> bool:
        """Whether the questions are LoCoMo's, which has tables of its own in the paper."""
        return self._source == locomo.DATASET

    def is_of_paper(self, table: int) -> bool:
        """Whether the paper measured a table on this very data set."""
        return DATASETS.get(table) == self._source

    def printed(self, table: int, row: str, column: str = OVERALL) -> PaperFigure | None:
        """The paper's own figure, where it gives one and has it from this data set."""
        return paper_figure(table, row, column) if self.is_of_paper(table) else None

    @property
    def _source(self) -> str:
        return self.report.dataset.partition(".")[0]
