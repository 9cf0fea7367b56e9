"""The report's figures for machines: flat metrics, and the tables behind the plots."""

import csv
import io
from collections.abc import Sequence

import numpy as np

from mesa_pipeline import subsets
from mesa_pipeline.evaluation.evaluate import EvaluationKind
from mesa_pipeline.evaluation.prefill import prefill
from mesa_pipeline.reports.findings import SubsetFinding
from mesa_pipeline.reports.headline import frozen_gap, token_share
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.standings import Standing, first_of_kind

DECIMALS = 6
REPORTED_KINDS: tuple[EvaluationKind, ...] = ("frozen", "all", "zero_shot", "random", "oracle")
SUBSET_COLUMNS = ("subset", "mask", "structures", "score", "tokens", "rank", "on_front", "unscored")
PARETO_COLUMNS = ("tokens", "score", "name", "kind")
POLICY_COLUMNS = (
    "policy",
    "kind",
    "score",
    "score_std",
    "tokens",
    "structures",
    "difference",
    "low",
    "high",
    "seeds",
    "unscored",
)


def flat_metrics(inputs: ReportInputs, findings: Sequence[SubsetFinding], found: Sequence[Standing]) -> dict[str, float]:
    """Figures by name; those that are unknown are absent."""
    swept = prefill(inputs.matrix.tokens)
    best, full = findings[0], next(finding for finding in findings if finding.mask == subsets.FULL_SUBSET)
    metrics: dict[str, float] = {
        "questions": len(inputs.matrix),
        "episodes": len(set(inputs.matrix.episode_ids)),
        "unscored_outcomes": inputs.matrix.unscored,
        "failures": len(inputs.failures),
        "skipped_rows": len(inputs.skipped),
        "split_seeds": len(inputs.tests),
        "swept_best_subset_score": best.score,
        "swept_best_subset_tokens": best.tokens,
        "swept_all_score": full.score,
        "swept_all_tokens": full.tokens,
        "prefill_naive_tokens": swept.naive,
        "prefill_shared_tokens": swept.shared,
        "prefill_share": swept.share,
    }
    for kind in REPORTED_KINDS:
        standing = first_of_kind(found, kind)
        if standing is not None:
            metrics |= {f"{kind}_score": standing.score.mean, f"{kind}_tokens": standing.tokens.mean}
    frozen, tested = first_of_kind(found, "frozen"), first_of_kind(found, "all")
    if frozen is not None and tested is not None:
        gap = frozen_gap(frozen, inputs.pooled)
        metrics |= {
            "frozen_score_std": np.nan if frozen.score.std is None else frozen.score.std,
            "frozen_structures": frozen.structures.mean,
            "difference_mean": frozen.difference.mean,
            "difference_low": gap.low,
            "difference_high": gap.high,
            "token_share": token_share(frozen, tested),
        }
    return {name: round(float(value), DECIMALS) for name, value in metrics.items() if np.isfinite(value)}


def subsets_csv(findings: Sequence[SubsetFinding]) -> str:
    """One line a subset, best first."""
    rows = [
        (subsets.label(f.mask), f.mask, subsets.size(f.mask), f.score, f.tokens, f.rank, int(f.on_front), f.unscored)
        for f in findings
    ]
    return csv_text(SUBSET_COLUMNS, rows)


def pareto_csv(findings: Sequence[SubsetFinding], policy: Standing | None) -> str:
    """The points of the cost figure by rising tokens: every subset, and the frozen policy where it was tested."""
    rows = [(f.tokens, f.score, subsets.label(f.mask), "front" if f.on_front else "subset") for f in findings]
    if policy is not None:
        rows.append((policy.tokens.mean, policy.score.mean, policy.name, "policy"))
    return csv_text(PARETO_COLUMNS, sorted(rows))


def policies_csv(found: Sequence[Standing]) -> str:
    """One line a policy."""
    rows = [
        (
            *(s.name, s.kind, s.score.mean, s.score.std, s.tokens.mean, s.structures.mean),
            *(s.difference.mean, s.low, s.high, s.seeds, s.unscored),
        )
        for s in found
    ]
    return csv_text(POLICY_COLUMNS, rows)


def csv_text(columns: Sequence[str], rows: Sequence[Sequence[str | float | None]]) -> str:
    """Comma-separated lines under a heading; what is unknown or not finite is left empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(value) for value in row] for row in rows)
    return buffer.getvalue()


def _plain(value: str | float | None) -> str | float:
    if value is None or isinstance(value, str):
        return value or ""
    return round(value, DECIMALS) if np.isfinite(value) else ""
