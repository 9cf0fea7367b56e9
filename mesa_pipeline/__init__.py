"""MESA: task-adaptive selection among five memory structures for long-horizon agents."""

__version__ = "0.1.0"
