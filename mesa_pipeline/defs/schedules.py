"""The nightly re-evaluation.

A schedule starts one job with one kind of partition, and this graph has two, so the automation is declared on the assets: at
each tick, whatever has been materialised once is brought up to date in order, each asset when all it depends on has been. What
is current already takes the core a second. Off until switched on in the UI, or by ``nightly.automatic``.
"""

from datetime import timedelta

import dagster as dg

from mesa_pipeline.defs.resources import read_settings

RULE = read_settings().nightly
NIGHTLY = (dg.AutomationCondition.on_cron(RULE.cron, RULE.timezone) & ~dg.AutomationCondition.missing()).with_label("nightly")
_TICK: dg.AutomationCondition[dg.AssetKey | dg.AssetCheckKey] = dg.AutomationCondition.cron_tick_passed(
    RULE.cron, RULE.timezone
)
_UPDATED = dg.AutomationCondition.newly_updated().since(_TICK) | dg.AutomationCondition.will_be_requested()
NIGHTLY_OF_THOSE_THERE = (
    _TICK.since_last_handled()
    & dg.AutomationCondition.all_deps_match(_UPDATED | dg.AutomationCondition.missing())
    & ~dg.AutomationCondition.missing()
).with_label("nightly, of those there")
"""As ``NIGHTLY``, for what depends on assets of which some may never be made: it waits for the others alone."""
REPORTED = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=RULE.report_fresh_hours))
"""Of what is there to be looked at each morning. Dagster judges an asset by its latest partition."""

nightly = dg.AutomationConditionSensorDefinition(
    "nightly",
    target=dg.AssetSelection.all(),
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING if RULE.automatic else dg.DefaultSensorStatus.STOPPED,
    description=(
        "Brings every dataset that was materialised once up to date, re-evaluates its champion and searches for a better one, "
        f"at the ticks of {RULE.cron!r} ({RULE.timezone})."
    ),
)
