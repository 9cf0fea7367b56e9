"""What a served policy takes, without MLflow."""

import pandas as pd
import pytest

from mesa_pipeline.errors import DataError
from mesa_pipeline.policies import FittedPolicy, FixedPolicy, LookupPolicy
from mesa_pipeline.policies.base import FitContext
from mesa_pipeline.served_policy import ServedPolicy


class Frozen:
    """As much of a frozen policy as is asked."""

    def __init__(self, fitted: FittedPolicy) -> None:
        self.fitted = fitted
        self.explain = fitted.explain


@pytest.fixture
def served(six_questions):
    return ServedPolicy(Frozen(LookupPolicy(("domain",), shrunk=False).fitted(six_questions, FitContext(1e-4, 0.0, 0))))


def test_labels_count_where_they_are_known(served):
    frame = pd.DataFrame({"question": ["a", "b", ""], "metadata": [{"domain": "Game"}, None, {"domain": "WEB", "steps": 4}]})
    frame.index = [7, 8, 9]
    found = served.predict(frame)
    assert found["structures"].to_dict() == {7: "S", 8: "T", 9: "T"}
    assert found["reason"][7] == "lookup by domain: Game -> S"


def test_no_question_has_no_answer(served):
    assert served.predict(pd.DataFrame({"question": []}, dtype=object)).empty
    assert (
        ServedPolicy(Frozen(FittedPolicy(FixedPolicy(3), {}))).predict(pd.DataFrame({"question": ["x"]}))["structures"][0]
        == "S+T"
    )


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"question": 3}, "a question is a text, not int"),
        ({"question": "a", "metadata": "Game"}, "a mapping, not str"),
        ({"question": "a", "metadata": {"steps": -1}}, "at least 0, not -1"),
    ],
)
def test_what_is_no_question_is_refused(served, row, told):
    with pytest.raises(DataError, match=told):
        served.predict(pd.DataFrame([row]))
