"""What the reports on compared systems are made from."""

from dataclasses import dataclass

from mesa_pipeline.datasets import locomo
from mesa_pipeline.reports.inputs import ComparedSystems, ReportInputs


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
        return self.report.dataset.partition(".")[0] == locomo.DATASET
