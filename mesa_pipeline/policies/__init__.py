"""What decides, question by question, which structures to read. To add a family: a module here, a line in ``POLICIES``."""

from collections.abc import Mapping
from typing import Any

from mesa_pipeline import subsets
from mesa_pipeline.config import PoliciesSettings
from mesa_pipeline.errors import PolicyError
from mesa_pipeline.policies.base import FitContext, FittedPolicy, Policy, PolicyInput
from mesa_pipeline.policies.fixed import BestFixedPolicy, FixedPolicy
from mesa_pipeline.policies.lookup import LookupPolicy

POLICIES: dict[str, type[Policy]] = {"fixed": FixedPolicy, "best_fixed": BestFixedPolicy, "lookup": LookupPolicy}


def open_policy(spec: Mapping[str, Any]) -> Policy:
    """The policy that ``spec()`` described.

    Raises:
        PolicyError: The type is not registered, or the description is not one of that type.
    """
    family = POLICIES.get(spec.get("type", ""))
    if family is None:
        raise PolicyError(f"unknown policy type {spec.get('type')!r}; known are {', '.join(POLICIES)}")
    try:
        return family.from_spec(spec)
    except (KeyError, TypeError, ValueError) as error:
        raise PolicyError(f"not a description of a {spec['type']!r} policy: {error!r}") from error


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
    "FitContext",
    "FittedPolicy",
    "FixedPolicy",
    "LookupPolicy",
    "Policy",
    "PolicyInput",
    "baseline_policies",
    "open_policy",
]
