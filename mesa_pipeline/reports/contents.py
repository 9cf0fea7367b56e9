"""What stands in a report, in order: the one place that knows its sections."""

from collections.abc import Sequence

import numpy as np

from mesa_pipeline.evaluation.held_out import TestResult
from mesa_pipeline.evaluation.prefill import prefill
from mesa_pipeline.outcomes import OutcomeMatrix
from mesa_pipeline.reports import figures, metrics, tables, text
from mesa_pipeline.reports.budget import budget_csv, budget_section
from mesa_pipeline.reports.champion import champion_section
from mesa_pipeline.reports.compared.inputs import ComparedInputs
from mesa_pipeline.reports.compared.page import systems_section
from mesa_pipeline.reports.comparing import budget_curve_csv, search_curve_csv, subset_points_csv
from mesa_pipeline.reports.cost_figure import cost_figure
from mesa_pipeline.reports.credit import credit_section
from mesa_pipeline.reports.document import Figure, Report, Section, Table
from mesa_pipeline.reports.findings import SubsetFinding, group_findings, mean_subset_findings, subset_findings
from mesa_pipeline.reports.group_figures import group_figure
from mesa_pipeline.reports.headline import headline, seeds_table
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.judges import judges_section
from mesa_pipeline.reports.ladder import ladder_csv
from mesa_pipeline.reports.looks import winner_looks
from mesa_pipeline.reports.search import ablations_section, policy_section, search_section
from mesa_pipeline.reports.search_tables import candidates_csv
from mesa_pipeline.reports.spending import spending_section
from mesa_pipeline.reports.standings import Standing, first_of_kind, standings

MAX_LINES = 100
UNTESTED = "Nothing to show before a policy has been tested on held-out episodes."


def make_report(inputs: ReportInputs) -> Report:
    """Arrange everything the inputs say. A dataset with nothing swept gives a report that says so."""
    swept, tested = subset_findings(inputs.matrix), _test_findings(inputs)
    found = standings(inputs.tests)
    top = headline(inputs.tests, found, inputs.pooled)
    return Report(
        title=f"What memory to read: {text.printable(inputs.dataset)}",
        verdict=top.verdict,
        notes=top.notes,
        key_figures=top.key_figures,
        sections=_sections(inputs, swept, tested, found),
        metrics=metrics.flat_metrics(inputs, swept, found),
        series=_series(inputs, swept, tested, found),
    )


def _sections(
    inputs: ReportInputs, swept: Sequence[SubsetFinding], tested: Sequence[SubsetFinding], found: Sequence[Standing]
) -> tuple[Section, ...]:
    """What a person reads, in order."""
    return (
        _policies_section(inputs, found),
        _subsets_section(inputs, swept),
        _winners_section(inputs),
        _cost_section(inputs, swept, tested, found),
        budget_section(inputs.budgets),
        _comparison_section(found),
        *((systems_section(ComparedInputs(inputs, inputs.compared)),) if inputs.compared else ()),
        *((judges_section(inputs.judged, inputs.leads),) if inputs.judged else ()),
        ablations_section(inputs),
        search_section(inputs),
        policy_section(inputs),
        *((champion_section(inputs.champion),) if inputs.champion.nights else ()),
        credit_section(inputs.credit),
        _build_section(inputs, swept),
        _choices_section(inputs),
        *((spending_section(inputs.spending, prefill(inputs.matrix.tokens)),) if inputs.spending else ()),
        _coverage_section(inputs),
        _failures_section(inputs),
        _provenance_section(inputs),
    )


def _series(
    inputs: ReportInputs, swept: Sequence[SubsetFinding], tested: Sequence[SubsetFinding], found: Sequence[Standing]
) -> dict[str, str]:
    """What other programs plot, as CSV by name."""
    return {
        "subsets": metrics.subsets_csv(swept),
        "pareto": metrics.pareto_csv(tested or swept, first_of_kind(found, "frozen")),
        "policies": metrics.policies_csv(found),
        "budget": budget_csv(inputs.budgets),
        "budget-curve": budget_curve_csv(inputs.budgets),
        "candidates": candidates_csv(inputs.searches),
        "search-curve": search_curve_csv(inputs.searches),
        "subset-points": subset_points_csv(swept),
        "ladder": ladder_csv(inputs.ladder),
    }


def _test_findings(inputs: ReportInputs) -> tuple[SubsetFinding, ...]:
    """The subsets over the test questions of the tested seeds, so that they compare with the policies; empty without tests."""
    seeds = {test.seed for test in inputs.tests}
    parts = [_of_episodes(inputs.matrix, split.test) for split in inputs.splits if split.seed in seeds]
    parts = [part for part in parts if len(part)]
    return mean_subset_findings(parts) if parts else ()


def _of_episodes(matrix: OutcomeMatrix, episode_ids: Sequence[str]) -> OutcomeMatrix:
    wanted = frozenset(episode_ids)
    return matrix.select(np.array([question.episode_id in wanted for question in matrix.questions], dtype=bool))


def _present(*items: Table | Figure | None) -> tuple[Table | Figure, ...]:
    return tuple(item for item in items if item is not None)


def _policies_section(inputs: ReportInputs, found: Sequence[Standing]) -> Section:
    if not found:
        return Section("policies", "Policies", (UNTESTED,))
    paragraphs = (
        "Each policy decides which of the five structures to read. The frozen one was chosen on validation and tested once; "
        "label-free means without the benchmark's labels, as with a person's own question.",
    )
    return Section("policies", "Policies", paragraphs, (tables.policies_table(found), seeds_table(inputs.tests)))


def _subsets_section(inputs: ReportInputs, swept: Sequence[SubsetFinding]) -> Section:
    if not len(inputs.matrix):
        return Section("subsets", "The 31 subsets", ("No question has been swept yet.",))
    paragraphs = (
        "S summary, T temporal, G graph, V vector, R raw. The sweep reads every non-empty subset for every question.",
    )
    return Section("subsets", "The 31 subsets", paragraphs, (tables.subsets_table(swept, len(inputs.matrix)),))


def _winners_section(inputs: ReportInputs) -> Section:
    domains = group_findings(inputs.matrix, lambda question: question.domain, inputs.evaluation)
    capabilities = group_findings(inputs.matrix, lambda question: question.qa_type, inputs.evaluation)
    looks = winner_looks([*domains, *capabilities])
    items = _present(
        group_figure(domains, "domains", "domain", looks),
        tables.winners_table(domains, "domain-winners", "domain") if domains else None,
        group_figure(capabilities, "capabilities", "capability", looks),
        tables.winners_table(capabilities, "capability-winners", "capability") if capabilities else None,
    )
    missing = () if capabilities else ("The questions carry no capability, so there are no winners by capability.",)
    return Section("winners", "Winners by domain and capability", missing, items)


def _cost_section(
    inputs: ReportInputs, swept: Sequence[SubsetFinding], tested: Sequence[SubsetFinding], found: Sequence[Standing]
) -> Section:
    population = "the test questions of each split seed, averaged over seeds" if tested else "all swept questions"
    policy = first_of_kind(found, "frozen") if tested else None
    figure = cost_figure(tested or swept, policy, population)
    return Section("cost", "Accuracy against cost", () if figure else ("No outcome has a score yet.",), _present(figure))


def _comparison_section(found: Sequence[Standing]) -> Section:
    figure = figures.policies_figure(found)
    return Section("comparison", "Single structures and lookups", () if figure else (UNTESTED,), _present(figure))


def _build_section(inputs: ReportInputs, swept: Sequence[SubsetFinding]) -> Section:
    figure = figures.build_figure(inputs.build_seconds)
    missing = () if figure else ("No build times were recorded.",)
    return Section(
        "build", "Building the structures", missing, _present(figure, tables.structures_table(swept, inputs.build_seconds))
    )


def _choices_section(inputs: ReportInputs) -> Section:
    choices = [test.choices[question] for test in inputs.tests for question in sorted(test.choices)]
    if not choices:
        return Section("choices", "What the frozen policy reads", (UNTESTED,))
    return Section(
        "choices", "What the frozen policy reads", (), _present(figures.choices_figure(choices), tables.choices_table(choices))
    )


def _coverage_section(inputs: ReportInputs) -> Section:
    matrix = inputs.matrix
    missing = int(np.isnan(matrix.tokens).sum())
    failed = int((np.isnan(matrix.scores) & ~np.isnan(matrix.tokens)).sum())
    facts = [
        ("Episodes with swept questions", text.number(len(set(matrix.episode_ids)))),
        ("Swept questions", text.number(len(matrix))),
        ("Outcomes wanted (questions x 31)", text.number(matrix.scores.size)),
        ("Outcomes scored", text.number(matrix.scores.size - matrix.unscored)),
        ("Outcomes read but unscored", text.number(failed)),
        ("Outcomes missing", text.number(missing)),
        ("Evidence tokens new to a prefix cache, of all read in the sweep", text.percent(prefill(matrix.tokens).share, 1)),
        ("Rows left out by --skip-invalid", text.number(len(inputs.skipped))),
        *(
            (
                f"Episodes of split seed {split.seed}",
                f"{len(split.train)} train, {len(split.val)} validation, {len(split.test)} test",
            )
            for split in inputs.splits
        ),
    ]
    caption = "An unscored or missing outcome is left out of every mean and counted here; it is never taken for a wrong answer."
    warnings = tuple(f"Split seed {split.seed}: {text.printable(line)}" for split in inputs.splits for line in split.warnings)
    return Section(
        "coverage", "Coverage", (), (tables.facts_table("coverage", "What was measured", facts, caption),), _capped(warnings)
    )


def _failures_section(inputs: ReportInputs) -> Section:
    if not inputs.failures and not inputs.skipped:
        return Section("failures", "What failed", ("Nothing failed and no row was left out.",))
    counts = (
        f"{text.plural(len(inputs.failures), 'unit')} failed; {text.plural(len(inputs.skipped), 'row')} left out on loading."
    )
    failed = tuple(f"Failed: {text.printable(line)}" for line in inputs.failures)
    skipped = tuple(f"Left out: {text.printable(line)}" for line in inputs.skipped)
    return Section("failures", "What failed", (counts,), (), _capped(failed) + _capped(skipped))


def _capped(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], *((f"and {text.number(more)} more",) if more > 0 else ()))


def _earlier(test: TestResult) -> str:
    return f"; {text.plural(len(test.earlier), 'other test')} of this seed before" if test.earlier else ""


def _provenance_section(inputs: ReportInputs) -> Section:
    receipts = [
        (
            f"Test receipt, split seed {test.seed}",
            f"policy {test.receipt.manifest_sha256[:12]}, outcomes {test.receipt.outcomes_sha256[:12]}, "
            f"{test.receipt.tested_at}{_earlier(test)}",
        )
        for test in sorted(inputs.tests, key=lambda test: test.seed)
    ]
    facts = [*inputs.provenance.items(), *receipts]
    caption = "Every score above was made with these. A stand-in reader or embedder is named as what it is."
    return Section(
        "provenance", "Provenance", (), (tables.facts_table("provenance", "What made these figures", facts, caption),)
    )
