"""What a language model is told: the contract of a policy, the direction to follow, and as much evidence as fits.

The wording is in ``prompts/``. A prompt is a function of the request alone, so it knows of validation questions what the
request says of them: means. No id of a question or an episode stands in it.
"""

import inspect
import textwrap
from functools import cache
from pathlib import Path
from string import Template

from mesa_pipeline.artifacts import fingerprint
from mesa_pipeline.config import LlmProposerSettings, SandboxSettings
from mesa_pipeline.llm import Message
from mesa_pipeline.policies.sandbox.facades import BUILTINS, FACADES, load_ml
from mesa_pipeline.search.directions import DIRECTIONS
from mesa_pipeline.search.proposers import ProposalRequest
from mesa_pipeline.search.proposers.evidence import evidence
from mesa_pipeline.search.proposers.quoting import cleaned, fenced

PROMPTS_FOLDER = Path(__file__).parent / "prompts"
REASON_CHARS = 400


def prompt_fingerprint(settings: LlmProposerSettings, sandbox: SandboxSettings) -> str:
    """Changes with any wording, guidance, limit or offered name that a prompt depends on beside the request."""
    wording = {str(path.relative_to(PROMPTS_FOLDER)): _wording(path) for path in sorted(PROMPTS_FOLDER.rglob("*.md"))}
    guidance = {direction.id: direction.guidance for direction in DIRECTIONS.values()}
    return fingerprint(wording, guidance, settings.model_dump(), system_message(sandbox).content)


def system_message(sandbox: SandboxSettings) -> Message:
    """What a policy is, may use and must not do."""
    text = _fill(
        "system",
        source_kb=sandbox.source_kb,
        state_kb=sandbox.state_kb,
        fit_seconds=f"{sandbox.fit_seconds:g}",
        select_seconds=f"{sandbox.select_seconds:g}",
        members="\n".join(f"  - `{name}`: {', '.join(members)}" for name, members in FACADES.items()),
        builtins=", ".join(BUILTINS),
        ml=fenced("text", [_described(name) for name in FACADES["ml"]]),
    )
    return Message("system", text)


def request_message(request: ProposalRequest, settings: LlmProposerSettings, chars: int) -> Message:
    """What is asked for, with the evidence that tells most, in at most ``chars`` characters altogether."""
    direction = request.direction
    inputs = ", ".join(f"`{name}`" for name in direction.inputs)

    def text(shown: str) -> str:
        return _fill(
            "request",
            slot=request.slot,
            iteration=request.iteration,
            task=_wording(PROMPTS_FOLDER / f"{request.slot}.md"),
            direction=direction.id,
            signal=direction.signal,
            mechanism=direction.mechanism,
            guards_against=direction.guards_against,
            inputs=f" A policy of this direction reads {inputs}." if inputs else "",
            guidance=direction.guidance.strip(),
            evidence=shown,
        )

    return Message("user", text(evidence(request, settings, chars - len(text("")))))


def retry_message(reasons: tuple[str, ...]) -> Message:
    """The reasons for which a source is refused, with the wish for another."""
    lines = [cleaned(reason, REASON_CHARS).replace("\n", " ") for reason in reasons]
    return Message("user", _fill("again", reasons=fenced("text", lines)))


def _described(name: str) -> str:
    """A function of the namespace ``ml``: its arguments and its documentation."""
    function = getattr(load_ml(), name)
    arguments = ", ".join(inspect.signature(function).parameters)
    return f"ml.{name}({arguments})\n{textwrap.indent(inspect.getdoc(function) or '', '    ')}"


def _fill(name: str, **values: object) -> str:
    return Template(_wording(PROMPTS_FOLDER / f"{name}.md")).substitute(values)


@cache
def _wording(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
