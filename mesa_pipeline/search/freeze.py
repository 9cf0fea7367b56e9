"""A chosen policy as files that nobody changes any more: ``policy.json``, ``state.json`` and ``manifest.json``.

Beside them may stand ``policy.py``, the source of a policy that is code, and ``values.json``, what each subset is expected to
be worth, for choosing within a token budget. The manifest is removed first and written last, so after a kill there is either
no manifest or a whole frozen policy.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from mesa_pipeline.artifacts import file_sha256, read_json_as, read_verified, write_json, write_sealed_json, write_text
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.evaluation.evaluate import Evaluation
from mesa_pipeline.policies import ExecutablePolicy, FittedPolicy, PolicyInput, open_policy
from mesa_pipeline.policies.sandbox import Sandbox, require_strong
from mesa_pipeline.policies.values import ValueModel
from mesa_pipeline.search.proposers import TEMPLATE

POLICY_FILE = "policy.json"
STATE_FILE = "state.json"
SOURCE_FILE = "policy.py"
SOURCE_KEY = "source"
VALUES_FILE = "values.json"
MANIFEST_FILE = "manifest.json"
MADE_BY = "mesa optimize"
REMEDY = f"freeze it anew with `{MADE_BY}`"


@dataclass(frozen=True)
class Provenance:
    """What a frozen policy was made from.

    Attributes:
        dataset: Name of the dataset.
        split_seed: Seed of the split.
        outcomes: Fingerprint of each outcome file used, by its key.
        reader: Name of the answer model.
        judge: Name of the judge or reward.
        embedder: Name of the embedding model.
        tokenizer: Name of the token counter.
        proposer: Name of what wrote the candidates.
        search: Fingerprint of the search it was chosen in.
        profile: Profile of the settings, and what was changed of it; empty where a manifest is older than profiles.
    """

    dataset: str
    split_seed: int
    outcomes: Mapping[str, str]
    reader: str
    judge: str
    embedder: str
    tokenizer: str
    proposer: str
    search: str
    profile: str = ""


@dataclass(frozen=True)
class FrozenPolicy:
    """A frozen policy, read back and verified.

    Attributes:
        fitted: The policy with its state.
        provenance: What it was made from.
        validation: What it was worth where it was chosen.
        manifest_sha256: Hash of its manifest, which names it for good.
        values: What each subset is expected to be worth; ``None`` where it was frozen without.
    """

    fitted: FittedPolicy
    provenance: Provenance
    validation: Evaluation
    manifest_sha256: str
    values: ValueModel | None = None

    @property
    def name(self) -> str:
        return self.fitted.name

    @property
    def reads_previews(self) -> bool:
        """Whether it must be shown previews of the evidence."""
        return self.fitted.reads_previews

    def select(self, question: PolicyInput) -> int:
        """Mask of the structures to read for one question."""
        return self.fitted.select(question)

    def explain(self, question: PolicyInput, chosen: int | None = None) -> str:
        """One line on what is chosen for a question and why, such as ``lookup by domain: Game -> S+T``.

        Args:
            question: The question.
            chosen: What ``select`` said of it, where it was asked before.
        """
        return self.fitted.explain(question, chosen)

    def require_strong(self) -> None:
        """Refuse to run a language model's code where the kernel cannot confine it: to be asked before it chooses anything.

        Raises:
            PolicyError: It is such code, the sandbox is weak, and ``policies.sandbox.allow_weak`` is not set.
        """
        policy = self.fitted.policy
        if isinstance(policy, ExecutablePolicy):
            require_strong(policy.sandbox, "template" if self.provenance.proposer == TEMPLATE else "llm")


def freeze(
    directory: Path,
    fitted: FittedPolicy,
    provenance: Provenance,
    validation: Evaluation,
    values: ValueModel | None = None,
    sandbox: Sandbox | None = None,
) -> FrozenPolicy:
    """Write a policy into a directory, in place of any that was there, and read it back.

    Args:
        directory: Where to.
        fitted: The policy with its state.
        provenance: What it was made from.
        validation: What it was worth where it was chosen.
        values: What each subset is expected to be worth, fitted to the same training outcomes.
        sandbox: Where a policy that is code will run.

    Raises:
        ArtifactError: The directory cannot be written.
    """
    _remove(directory / MANIFEST_FILE)
    spec = fitted.policy.spec()
    source = spec.pop(SOURCE_KEY, None)
    write_json(directory / POLICY_FILE, spec)
    write_json(directory / STATE_FILE, fitted.state)
    optional = {VALUES_FILE: values and values.to_json(), SOURCE_FILE: source}
    for name, content in optional.items():
        _replace(directory / name, content)
    names = [POLICY_FILE, STATE_FILE, *(name for name, content in optional.items() if content is not None)]
    manifest = {
        "name": fitted.name,
        "sha256": {name: file_sha256(directory / name) for name in names},
        "provenance": asdict(provenance),
        "validation": asdict(validation),
    }
    write_sealed_json(directory / MANIFEST_FILE, manifest)
    return load_frozen(directory, sandbox)


def load_frozen(directory: Path, sandbox: Sandbox | None = None) -> FrozenPolicy:
    """Read a frozen policy and verify that it is what was frozen.

    Args:
        directory: Where it lies.
        sandbox: Where a policy that is code will run.

    Raises:
        ArtifactError: It is missing, incomplete or was changed; names the command that makes it.
        PolicyError: It needs a policy type that this version does not have.
    """
    path = directory / MANIFEST_FILE
    manifest = read_json_as(_Manifest.from_json, path, MADE_BY)
    contents = {name: read_verified(directory / name, expected, REMEDY) for name, expected in manifest.sha256.items()}
    spec, state = json.loads(contents[POLICY_FILE]), json.loads(contents[STATE_FILE])
    if SOURCE_FILE in contents:
        spec[SOURCE_KEY] = contents[SOURCE_FILE].decode("utf-8")
    fitted = FittedPolicy(open_policy(spec, sandbox), state)
    values = ValueModel.from_json(json.loads(contents[VALUES_FILE])) if VALUES_FILE in contents else None
    return FrozenPolicy(fitted, manifest.provenance, manifest.validation, file_sha256(path), values)


@dataclass(frozen=True)
class _Manifest:
    """What vouches for the other files: ``sha256`` has the hash of each by its name."""

    sha256: Mapping[str, str]
    provenance: Provenance
    validation: Evaluation

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        optional = [name for name in (VALUES_FILE, SOURCE_FILE) if name in value["sha256"]]
        hashes = {name: value["sha256"][name] for name in (POLICY_FILE, STATE_FILE, *optional)}
        return cls(hashes, Provenance(**value["provenance"]), Evaluation(**value["validation"]))


def _replace(path: Path, content: Any) -> None:
    """Write a text as it is, any other value as JSON; ``None`` removes what was there."""
    if content is None:
        _remove(path)
    elif isinstance(content, str):
        write_text(path, content)
    else:
        write_json(path, content)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ArtifactError(f"cannot replace {path}: {error.strerror}") from error
