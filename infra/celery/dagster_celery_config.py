"""How the workers of worker.sh treat tasks; ``dagster_celery.app`` reads a module of this name. Why stands in README.md."""

import os

broker_url = os.environ["MESA_CELERY_BROKER"]
result_backend = os.environ["MESA_CELERY_BACKEND"]
task_acks_late = True
task_reject_on_worker_lost = True
worker_prefetch_multiplier = 1
worker_cancel_long_running_tasks_on_connection_loss = False
broker_connection_retry_on_startup = True
broker_transport_options = {
    "visibility_timeout": int(os.environ.get("MESA_CELERY_VISIBILITY_SECONDS", "14400")),
    "unacked_restore_throttle": 1,
}
