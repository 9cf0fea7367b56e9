"""What decides, question by question, which structures to read. To add a family: a module here, a line in ``POLICIES``."""

from typing import Any

from mesa_pipeline import subsets
from mesa_pipeline.config import PoliciesSettings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.policies.base import FitContext, FittedPolicy, Policy, PolicyInput
from mesa_pipeline.policies.executable import ExecutablePolicy
from mesa_pipeline.policies.fixed import BestFixedPolicy, FixedPolicy
from mesa_pipeline.policies.lookup import LookupPolicy
from mesa_pipeline.policies.sandbox import Sandbox

POLICIES: dict[str, type[Policy]] = {
    "fixed": FixedPolicy,
    "best_fixed": BestFixedPolicy,
    "lookup": LookupPolicy,
    "executable": ExecutablePolicy,
}


def open_policy(spec: Any, sandbox: Sandbox | None = None) -> Policy:
    """The policy that ``spec()`` described; ``spec`` is any JSON value, as read from a file.

    Args:
        spec: The description.
        sandbox: Where a policy that is code will run.

    Raises:
        PolicyError: The type is not registered, or the description is not one of that type.
    """
    kind = spec.get("type") if isinstance(spec, dict) else None
    if not isinstance(kind, str) or kind not in POLICIES:
        raise PolicyError(f"unknown policy type {kind!r}; known are {', '.join(POLICIES)}")
    try:
        return POLICIES[kind].from_spec(spec, sandbox)
    except (KeyError, TypeError, ValueError) as error:
        raise PolicyError(f"not a description of a {kind!r} policy: {error!r}") from error


def baseline_policies(settings: PoliciesSettings) -> list[Policy]:
    """The policies that need no search, "all" first: what any other is compared with."""
    return [
        FixedPolicy(subsets.FULL_SUBSET),
        *(FixedPolicy(mask) for mask in subsets.SINGLE_SUBSETS),
        BestFixedPolicy(),
        *(LookupPolicy(keys, shrunk) for keys in settings.lookup_keys for shrunk in (False, True)),
        LookupPolicy(settings.route_keys, shrunk=True, single=True),
    ]


__all__ = [
    "POLICIES",
    "BestFixedPolicy",
    "ExecutablePolicy",
    "FitContext",
    "FittedPolicy",
    "FixedPolicy",
    "LookupPolicy",
    "Policy",
    "PolicyInput",
    "baseline_policies",
    "open_policy",
]
