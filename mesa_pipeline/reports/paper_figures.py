"""The paper's own figures, where its text gives them: they stand beside ours, in columns of their own, never mixed with them.

Scores are times a hundred, as printed. Most bodies of the paper's tables are not in its text; what is missing here is absent
there. A figure that the text gives as a difference is stated as that, with the figure it follows from.
"""

from dataclasses import dataclass

from mesa_pipeline.evaluation.held_out import FROZEN_ROW
from mesa_pipeline.evaluation.system_costs import PARALLEL_ROW

QWEN = "Qwen3-32B answers and judges, Qwen3-Embedding-4B embeds"
QWEN_F1 = "Qwen3-32B answers, token F1, Qwen3-Embedding-4B embeds"
QWEN_BUILDS = "Qwen3-32B, one request at a time, on NVIDIA A100"
OVERALL = "overall"


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper.

    Attributes:
        table: Number of the table it belongs to.
        row: Code of the system, or name of the row of a held-out test.
        column: What it is of: ``OVERALL`` or the name of a group.
        value: As printed.
        source: Where the paper says so.
        std: Sample standard deviation over its splits, where given.
        tokens: Evidence tokens of a question, where given.
        structures: Structures read for a question, where given.
    """

    table: int
    row: str
    column: str
    value: float
    source: str
    std: float | None = None
    tokens: float | None = None
    structures: float | None = None


DATASETS = {1: "ama_bench", 2: "locomo", 3: "ama_bench", 4: "ama_bench", 8: "ama_bench", 9: "ama_bench"}
"""What each table was measured on: figures of other data have nothing to stand beside."""

MODELS = {1: QWEN, 2: QWEN_F1, 3: QWEN, 8: QWEN_BUILDS, 9: QWEN}
"""What each table of ``FIGURES`` was made with."""

FIGURES = (
    PaperFigure(1, FROZEN_ROW, OVERALL, 65.1, "Section 5.2; deviation from Table 3", 0.8),
    PaperFigure(1, "ama_agent", OVERALL, 56.6, "Section 5.2: 8.5 points below MESA's 65.1"),
    PaperFigure(1, "long_context", OVERALL, 52.6, "Section 5.2: 12.5 points below MESA's 65.1"),
    PaperFigure(1, FROZEN_ROW, "causal", 63.6, "Section 5.2"),
    PaperFigure(1, "ama_agent", "causal", 65.0, "Section 5.2: MESA's 63.6 is 1.4 lower"),
    PaperFigure(2, FROZEN_ROW, OVERALL, 49.0, "Section 5.2"),
    PaperFigure(2, "e_mem", OVERALL, 47.2, "Section 5.2: MESA's 49.0 is 1.8 higher"),
    PaperFigure(3, "S", OVERALL, 57.7, "Table 3", 1.3, 5700, 1.0),
    PaperFigure(3, "T", OVERALL, 51.4, "Table 3", 0.8, 2800, 1.0),
    PaperFigure(3, "G", OVERALL, 32.7, "Table 3", 1.2, 800, 1.0),
    PaperFigure(3, "V", OVERALL, 46.6, "Table 3", 0.4, 3500, 1.0),
    PaperFigure(3, "R", OVERALL, 48.2, "Table 3", 0.5, 10_500, 1.0),
    PaperFigure(3, "random", OVERALL, 56.7, "Table 3", 1.2, 11_400, 2.5),
    PaperFigure(3, "LLM zero-shot", OVERALL, 61.4, "Table 3", 0.8, 11_200, 2.2),
    PaperFigure(3, "all", OVERALL, 63.7, "Table 3", 1.0, 18_700, 5.0),
    PaperFigure(3, "route to one", OVERALL, 57.0, "Table 3", 3.2, 6800, 1.0),
    PaperFigure(3, "without priors", OVERALL, 63.1, "Table 3", 2.3, 11_500, 2.8),
    PaperFigure(3, "without UCB", OVERALL, 64.3, "Table 3", 2.2, 12_400, 3.0),
    PaperFigure(3, FROZEN_ROW, OVERALL, 65.1, "Table 3", 0.8, 11_000, 2.8),
    PaperFigure(8, "memorag", OVERALL, 32.2, "Appendix F.3"),
    PaperFigure(8, "ama_agent", OVERALL, 38.2, "Appendix F.3"),
    PaperFigure(8, FROZEN_ROW, OVERALL, 73.3, "Appendix F.3: 38.2 shared with AMA-Agent, 35.1 for the graph"),
    PaperFigure(8, PARALLEL_ROW, OVERALL, 38.2, "Appendix F.3: the graph's 35.1 beside the rest"),
    PaperFigure(8, "G", OVERALL, 35.1, "Appendix F.3"),
    PaperFigure(8, "R", OVERALL, 0.001, "Appendix F.3"),
    PaperFigure(8, "mem0", OVERALL, 179.9, "Appendix F.3"),
    PaperFigure(8, "hindsight", OVERALL, 420.3, "Appendix F.3"),
    PaperFigure(8, "a_mem", OVERALL, 717.2, "Appendix F.3"),
    PaperFigure(9, "lookup by domain (raw)", OVERALL, 64.4, "Appendix F.4"),
    PaperFigure(9, "lookup by capability (raw)", OVERALL, 63.8, "Appendix F.4"),
    PaperFigure(9, "lookup by domain x capability (raw)", OVERALL, 64.0, "Appendix F.4"),
    PaperFigure(9, FROZEN_ROW, OVERALL, 65.1, "Appendix F.4; deviation from Table 3", 0.8),
)

MARGINS = {
    "WEB": 4.1,
    "TEXT2SQL": 8.9,
    "SOFTWARE": 15.5,
    "EMBODIED_AI": 8.5,
    "OPENWORLD_QA": -0.7,
    "Game": -0.7,
}
"""MESA minus the strongest other system in each domain (Section 5.2), for Table 4, whose body is not in the text."""

SEARCHED = 65.67
"""What the policy that the search of Figure 5 ends with scores on test questions of AMA-Bench (Section 5.4)."""


def paper_figure(table: int, row: str, column: str = OVERALL) -> PaperFigure | None:
    """The paper's figure, where its text gives one."""
    found = (figure for figure in FIGURES if (figure.table, figure.row, figure.column) == (table, row, column))
    return next(found, None)
