"""The nightly re-evaluation.

A schedule starts one job with one kind of partition, and this graph has two, so the automation is declared on the assets: at
each tick, whatever has been materialised once is brought up to date in order, each asset when all it depends on has been. What
is current already takes the core a second. Off until switched on in the UI.
"""

import dagster as dg

NIGHTLY_CRON = "0 3 * * *"
NIGHTLY = (dg.AutomationCondition.on_cron(NIGHTLY_CRON) & ~dg.AutomationCondition.missing()).with_label("nightly")

nightly = dg.AutomationConditionSensorDefinition(
    "nightly",
    target=dg.AssetSelection.all(),
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Brings every dataset that was materialised once up to date and re-evaluates its policies, each night at 3.",
)
