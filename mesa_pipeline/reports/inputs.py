"""What a report is made from: plain data, gathered by the stage that asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mesa_pipeline.config import EvaluationSettings
from mesa_pipeline.datasets.splits import Split
from mesa_pipeline.evaluation.budget import BudgetCurve
from mesa_pipeline.evaluation.compared_systems import Comparison
from mesa_pipeline.evaluation.credit_summary import CreditSummary
from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.evaluation.ladder import Rung
from mesa_pipeline.evaluation.leads import LeadStanding
from mesa_pipeline.evaluation.nights import ChampionHistory
from mesa_pipeline.evaluation.panel import JudgedSeed
from mesa_pipeline.evaluation.statistics import Interval
from mesa_pipeline.evaluation.system_costs import MeanCost
from mesa_pipeline.llm.ledger import Spending
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.reports.search_findings import SearchFinding


@dataclass(frozen=True)
class ComparedSystems:
    """MESA and the systems that were run beside it.

    Attributes:
        scored: All systems, by the reward of the settings.
        f1: The same answers by token F1, whatever the reward was.
        builds: What building took, in the order of the table.
    """

    scored: Comparison
    f1: Comparison
    builds: tuple[MeanCost, ...]


@dataclass(frozen=True)
class ReportInputs:
    """Everything a report speaks of.

    Attributes:
        dataset: Name of the dataset.
        provenance: What made the figures (reader, reward, embedder, tokenizer, versions, fingerprints), by name, in the order
            in which to show it.
        matrix: Outcomes of every swept question.
        evaluation: Bootstrap settings.
        tests: Held-out results, one per split seed; empty before a policy is tested.
        pooled: Interval of the frozen policies' difference to reading all five over all tested seeds at once, for the headline;
            without it the headline falls back on the seeds' own intervals.
        credit: What each structure is worth and what choosing better could gain; ``None`` before a policy is tested.
        budgets: The frozen policies within token budgets, beside other ways to fill them; empty where none was frozen with its
            expected values.
        searches: The finished search of each split seed.
        ablations: Tests of the policies of each ablation, by its name.
        ladder: Every row of the tests and every ablation, compared with all five and with the frozen policy.
        answered: Fingerprints of the answers of each system that was run beside MESA, by its code; empty where none was.
        compared: Those systems and MESA side by side; ``None`` where none was run, or no policy was tested.
        judged: What further judges made of the test answers, for each seed with judgements; all by the same judges.
        leads: How far each of them puts the frozen policy before every other system; empty where none was asked.
        spending: What language models behind endpoints cost, by phase and model; empty where none was asked.
        champion: The nights of the dataset's champions; without any before the first.
        splits: The episodes of each seed's parts.
        build_seconds: Seconds each episode's memory took to build, by structure code.
        failures: One line for each unit that failed.
        skipped: One line for each row the loader left out.
    """

    dataset: str
    provenance: Mapping[str, str]
    matrix: OutcomeMatrix
    evaluation: EvaluationSettings
    tests: tuple[TestResult, ...] = ()
    pooled: Interval | None = None
    credit: CreditSummary | None = None
    budgets: tuple[BudgetCurve, ...] = ()
    searches: tuple[SearchFinding, ...] = ()
    ablations: Mapping[str, tuple[TestResult, ...]] = field(default_factory=dict)
    ladder: tuple[Rung, ...] = ()
    answered: Mapping[str, str] = field(default_factory=dict)
    compared: ComparedSystems | None = None
    judged: tuple[JudgedSeed, ...] = ()
    leads: tuple[LeadStanding, ...] = ()
    spending: tuple[Spending, ...] = ()
    champion: ChampionHistory = field(default_factory=ChampionHistory)
    splits: tuple[Split, ...] = ()
    build_seconds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
