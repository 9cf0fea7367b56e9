"""What the reports on compared systems are made from."""

from dataclasses import dataclass

from mesa_pipeline.datasets import locomo
from mesa_pipeline.reports.inputs import ComparedSystems, ReportInputs
from mesa_pipeline.reports.paper_figures import DATASETS, OVERALL, PaperFigure, paper_figure


@dataclass(frozen=True)
class ComparedInputs:
    """MESA and the systems that were run beside it, on one dataset.

    Attributes:
        report: What the dataset's own report is made from, with its analyses; at least one policy was tested.
        systems: The systems side by side.
    """

    report: ReportInputs
    systems: ComparedSystems

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
