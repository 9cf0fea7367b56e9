import pytest

from mesa_pipeline.errors import SandboxFailure
from mesa_pipeline.policies.sandbox.tiers import Confinement, judge

STOPPED = {"open a file": False, "start a process": False}


def test_a_process_that_could_do_nothing_is_held_by_the_kernel() -> None:
    confinement = judge({"layers": ["user", "landlock 7", "seccomp"], "attempts": STOPPED})
    assert confinement.tier == "kernel"
    assert str(confinement) == "kernel: separate user, Landlock ABI 7, seccomp"


def test_what_counts_is_what_failed_not_which_layers_there_are() -> None:
    assert judge({"layers": ["seccomp"], "attempts": STOPPED}).tier == "kernel"
    weak = judge({"layers": ["user", "landlock 7", "seccomp"], "attempts": {**STOPPED, "start a process": True}})
    assert weak.tier == "process"
    assert str(weak) == "process: a policy is held by limits on time and memory alone and could start a process"


@pytest.mark.parametrize("report", [None, [], {}, {"layers": [], "attempts": {}}, {"layers": "x", "attempts": STOPPED}])
def test_a_self_test_that_tried_nothing_proves_nothing(report: object) -> None:
    with pytest.raises(SandboxFailure):
        judge(report)


def test_confinement_names_layers_it_does_not_know() -> None:
    assert str(Confinement(("jail 3",), ())) == "kernel: jail 3"
