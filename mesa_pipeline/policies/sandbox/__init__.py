"""Policies as code, run where they can do no harm (paper, Section 4; threat model in docs/decisions/0091).

A policy is one source file that defines ``select(state, q)`` and mostly ``fit(rows, ctx)``. ``Sandbox`` runs it: a fresh
process imports what policies may use, forks a confined child for each job, and the host checks every byte that comes back.
A program that searches one trajectory runs in the same way (``searching``; docs/decisions/0130).
"""

from mesa_pipeline.errors import SandboxFailure
from mesa_pipeline.policies.sandbox.host import HashSeed, Origin, Sandbox, open_sandbox, require_strong
from mesa_pipeline.policies.sandbox.replies import Reply
from mesa_pipeline.policies.sandbox.tiers import REMEDY, Confinement, Tier
from mesa_pipeline.types import State

__all__ = [
    "REMEDY",
    "Confinement",
    "HashSeed",
    "Origin",
    "Reply",
    "Sandbox",
    "SandboxFailure",
    "State",
    "Tier",
    "open_sandbox",
    "require_strong",
]
