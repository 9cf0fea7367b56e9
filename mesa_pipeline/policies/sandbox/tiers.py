"""How well this system confines a policy, found out by trying what must fail."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mesa_pipeline.policies.sandbox.replies import failure

Tier: TypeAlias = Literal["kernel", "process"]
"""``kernel``: the kernel refuses files, processes, connections and signals. ``process``: only time and memory are limited."""

_LAYER_NAMES = {"user": "separate user", "landlock": "Landlock ABI", "seccomp": "seccomp"}
REMEDY = "run on Linux 5.13 or later, outside a container that forbids seccomp and Landlock"
"""What to do about a weak tier."""


@dataclass(frozen=True)
class Confinement:
    """What holds a policy's code in.

    Attributes:
        layers: What the kernel put on, such as ``landlock 7``.
        succeeded: What a confined process could do although it must not.
    """

    layers: tuple[str, ...]
    succeeded: tuple[str, ...]

    @property
    def tier(self) -> Tier:
        """Judged by what failed alone: seccomp without Landlock counts when it stops everything tried."""
        return "process" if self.succeeded else "kernel"

    def __str__(self) -> str:
        if self.succeeded:
            return f"process: a policy is held by limits on time and memory alone and could {', '.join(self.succeeded)}"
        names = [" ".join((_LAYER_NAMES.get(kind, kind), *rest)) for kind, *rest in map(str.split, self.layers)]
        return f"kernel: {', '.join(names)}"


def judge(report: Any) -> Confinement:
    """What the self-test of a confined process showed: its ``layers``, and its ``attempts`` with whether each succeeded.

    Raises:
        SandboxFailure: It did not report as it should.
    """
    match report:
        case {"layers": list(layers), "attempts": dict(attempts)} if attempts:
            return Confinement(tuple(map(str, layers)), tuple(name for name, succeeded in attempts.items() if succeeded))
    raise failure("the self-test of the sandbox replied nonsense")
