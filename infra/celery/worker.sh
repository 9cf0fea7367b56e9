#!/bin/sh
# One worker: takes a step at a time from the queue and executes it. Start one on each machine, with the same environment
# everywhere (README.md). Further flags are handed on: ./worker.sh --hostname gpu@%h
set -eu

: "${MESA_CELERY_BROKER:?address of the broker, such as redis://:PASSWORD@HOST:6379/0}"
: "${MESA_CELERY_BACKEND:?address where results are kept, such as redis://:PASSWORD@HOST:6379/1}"
: "${MESA_WORKSPACE:?the workspace, at the same path on every machine}"

HERE="$(cd "$(dirname "$0")" && pwd)"
CELERY="${CELERY:-celery}"

export MESA_EXECUTOR=celery DAGSTER_DISABLE_TELEMETRY=1
export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"

exec "$CELERY" --app dagster_celery.app worker --pool solo --concurrency 1 --queues "${MESA_CELERY_QUEUE:-dagster}" \
  --without-gossip --without-mingle --without-heartbeat --loglevel "${MESA_CELERY_LOG:-INFO}" "$@"
