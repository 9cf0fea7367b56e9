"""A frozen policy as ``mlflow.pyfunc`` loads and asks it: MLflow finds this module by its name in the model's ``MLmodel`` file.

Like the command line, this is a root: settings and environment are read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mesa_pipeline import subsets
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import DataError
from mesa_pipeline.policies import PolicyInput
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import FrozenPolicy, load_frozen

QUESTION, METADATA, STEPS = "question", "metadata", "steps"


@dataclass(frozen=True)
class ServedPolicy:
    """Says of each question which structures to read, before anything is retrieved.

    Attributes:
        policy: The frozen policy; code in it runs in the sandbox alone.
    """

    policy: FrozenPolicy

    def predict(self, model_input: pd.DataFrame) -> pd.DataFrame:
        """Choose for n questions.

        Args:
            model_input: A row for each: its text under ``question`` and, where known, the benchmark's labels (``domain``,
                ``task_type``, ``qa_type``) and the trajectory's number of ``steps`` as a mapping under ``metadata``. Previews
                of evidence take memories to make, so there are none here: a policy that looks at them may choose otherwise in
                ``mesa ask``.

        Returns:
            n rows with the same index: ``structures``, such as ``S+T``, and the ``reason`` in one line.

        Raises:
            DataError: A question is not a text, or its metadata no mapping.
            PolicyError: The policy failed on a question.
        """
        columns = [model_input[name] if name in model_input else [None] * len(model_input) for name in (QUESTION, METADATA)]
        inputs = [_policy_input(question, metadata) for question, metadata in zip(*columns, strict=True)]
        masks = self.policy.fitted.choices(inputs).tolist() if inputs else []
        chosen = {
            "structures": [subsets.label(mask) for mask in masks],
            "reason": [self.policy.explain(asked, mask) for asked, mask in zip(inputs, masks, strict=True)],
        }
        return pd.DataFrame(chosen, index=model_input.index, dtype=object)


def _load_pyfunc(path: str) -> ServedPolicy:
    """Read a frozen policy's folder and verify it (the name is MLflow's).

    Raises:
        ArtifactError: It is incomplete or was changed after it was frozen.
        PolicyError: It is a language model's code, and the sandbox here is weak.
    """
    policy = load_frozen(Path(path), open_sandbox(load_settings().policies.sandbox))
    policy.require_strong()
    return ServedPolicy(policy)


def _policy_input(question: Any, metadata: Any) -> PolicyInput:
    if not isinstance(question, str):
        raise DataError(f"a question is a text, not {type(question).__name__}")
    known = {} if pd.api.types.is_scalar(metadata) and pd.isna(metadata) else metadata
    if not isinstance(known, Mapping):
        raise DataError(f"metadata of a question is a mapping, not {type(metadata).__name__}")
    labels = {str(name): str(value) for name, value in known.items() if name != STEPS and value not in (None, "")}
    return PolicyInput(question, labels, _steps(known.get(STEPS)))


def _steps(value: Any) -> int:
    """As many as are said, 0 where nothing is."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DataError(f"the steps of a trajectory are a whole number of at least 0, not {value!r}")
    return value
