"""The report's sections on the search, the policy it found, and what is lost when a part of the search is left out."""

import re

from mesa_pipeline.reports import text
from mesa_pipeline.reports.behaviour import behaviour_table
from mesa_pipeline.reports.document import Figure, Listing, Section, Table
from mesa_pipeline.reports.inputs import ReportInputs
from mesa_pipeline.reports.ladder import ladder_table
from mesa_pipeline.reports.search_figures import archive_figure, arms_figure, objective_figure
from mesa_pipeline.reports.search_findings import SearchFinding
from mesa_pipeline.reports.search_tables import (
    candidates_table,
    inflation_table,
    lineage_table,
    readings_table,
    searches_table,
)

SHOWN_STATE_CHARS = 4000
NOT_SEARCHED = "No policy has been searched for yet; search with: mesa optimize"
NOT_ABLATED = "No ablation has been tested yet; search and test them with: mesa ablate"


def search_section(inputs: ReportInputs) -> Section:
    """What the searches tried and found; figures are of the first split seed."""
    if not inputs.searches:
        return Section("search", "The search", (NOT_SEARCHED,))
    found = inputs.searches[0]
    inflation = inflation_table(inputs.searches, inputs.tests)
    items = (
        objective_figure(found),
        searches_table(inputs.searches),
        *((inflation,) if inflation else ()),
        arms_figure(found),
        archive_figure(found),
        readings_table(found),
        candidates_table(found),
    )
    return Section("search", "The search", (budget_sentence(found),), items)


def budget_sentence(found: SearchFinding) -> str:
    """What a search planned and what became of it."""
    directions = text.plural(len(found.arms), "direction")
    return (
        f"Split seed {found.seed}: the {text.printable(found.proposer)} proposer wrote policies along {directions}; of "
        f"{text.plural(found.planned, 'candidate')} planned {text.number(found.count('evaluated'))} were evaluated, "
        f"{text.number(found.count('duplicate'))} chose exactly as an earlier one and {text.number(found.count('invalid'))} "
        "were invalid. Policies were fitted to the training questions and compared on the validation questions; test questions "
        "were not opened."
    )


def policy_section(inputs: ReportInputs) -> Section:
    """The winner of the first split seed: what it does, where it comes from, and its code."""
    if not inputs.searches:
        return Section("policy", "The policy found", (NOT_SEARCHED,))
    found = inputs.searches[0]
    test = found.test_among(inputs.tests)
    behaviour = behaviour_table(test, inputs.matrix) if test else None
    hypothesis = text.printable(found.winner.hypothesis)
    paragraphs = (
        f"Split seed {found.seed} froze {found.chosen}"
        + (f", along {found.winner.direction}." if found.winner.direction else "."),
        *((f"Its hypothesis: {hypothesis}",) if hypothesis else ()),
    )
    items: tuple[Table | Figure | Listing, ...] = (
        *((behaviour,) if behaviour else ()),
        lineage_table(found),
        policy_listing(found),
        _state_listing(found),
    )
    return Section("policy", "The policy found", paragraphs, items)


def policy_listing(found: SearchFinding) -> Listing:
    """The winning policy's code, as it was scored and as it is run for every question asked."""
    caption = (
        f"Split seed {found.seed}, {found.chosen}. fit learns from the training outcomes once; select is called for each "
        "question and sees its text, labels and previews of the evidence, never a score. It runs in a confined process."
    )
    return Listing("policy", "Its code", text.code(found.source), caption, "python")


def _state_listing(found: SearchFinding) -> Listing:
    cut = len(found.state) > SHOWN_STATE_CHARS
    shown = _flattened(found.state)[:SHOWN_STATE_CHARS] + ("\n…" if cut else "")
    caption = "What fit learnt from the training outcomes" + (", its beginning; the whole is in state.json." if cut else ".")
    return Listing("state", "What it learnt", text.code(shown), caption, "json")


def _flattened(json_text: str) -> str:
    """Indented JSON with its lists of plain values on one line each."""
    return re.sub(r"\[\s*([^\[\]{}]*?)\s*\]", lambda match: "[" + re.sub(r",\s+", ", ", match.group(1)) + "]", json_text)


def ablations_section(inputs: ReportInputs) -> Section:
    """Every baseline and ablation beside the policy found."""
    if not inputs.ladder:
        return Section("ablations", "Ablations", ("Nothing to show before a policy has been tested on held-out episodes.",))
    missing = () if inputs.ablations else (NOT_ABLATED,)
    return Section("ablations", "Ablations", missing, (ladder_table(inputs.ladder),))
