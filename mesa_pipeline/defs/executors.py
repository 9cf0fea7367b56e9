"""Where the steps of a run are executed: in its own process, by Celery workers, or in pods.

``MESA_EXECUTOR`` names one of ``EXECUTORS``; how the other machines are set up stands in ``infra/``.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import dagster as dg

from mesa_pipeline.errors import ConfigError, MissingDependency

BROKER_VARIABLE = "MESA_CELERY_BROKER"
BACKEND_VARIABLE = "MESA_CELERY_BACKEND"
"""Environment variables with the addresses of Celery's queue and results; Dagster is told their names, not what they hold."""


def in_process() -> dg.ExecutorDefinition:
    """One process for all steps of a run, because a stage spreads over the cores by itself."""
    return dg.in_process_executor


def celery() -> dg.ExecutorDefinition:
    """One task a step, for the workers that listen at the broker."""
    addresses = {"broker": {"env": BROKER_VARIABLE}, "backend": {"env": BACKEND_VARIABLE}}
    executor: dg.ExecutorDefinition = _installed("dagster_celery", "celery").celery_executor
    return executor.configured(addresses, name="celery")


def kubernetes() -> dg.ExecutorDefinition:
    """One pod a step, made like the pod of its run."""
    executor: dg.ExecutorDefinition = _installed("dagster_k8s", "kubernetes").k8s_job_executor
    return executor


EXECUTORS: dict[str, Callable[[], dg.ExecutorDefinition]] = {
    "in-process": in_process,
    "celery": celery,
    "kubernetes": kubernetes,
}


def executor_named(name: str) -> dg.ExecutorDefinition:
    """The executor of that name.

    Raises:
        ConfigError: There is none of that name; lists those there are.
        MissingDependency: Its package is not installed.
    """
    if name not in EXECUTORS:
        raise ConfigError(f"unknown executor {name!r}; known are {', '.join(EXECUTORS)}")
    return EXECUTORS[name]()


def _installed(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(f"{module} is not there; install mesa-pipeline[{extra}]") from error
