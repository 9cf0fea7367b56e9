import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from mesa_pipeline import __version__
from mesa_pipeline.artifacts import file_sha256, write_sealed_json
from mesa_pipeline.errors import ArtifactError, PolicyError
from mesa_pipeline.evaluation.evaluate import evaluate_policy
from mesa_pipeline.policies import ExecutablePolicy, FitContext, FixedPolicy, LookupPolicy, PolicyInput
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.sandbox import Confinement, Sandbox, open_sandbox
from mesa_pipeline.policies.values import fit_values
from mesa_pipeline.search.freeze import Provenance, freeze, load_frozen
from tests.search.searches import REPOSITORY, SETTINGS, learning, reading, search_data, table

CONTEXT = FitContext(1e-4, 0.0, 0)
PROVENANCE = Provenance(
    dataset="synthetic",
    split_seed=3,
    outcomes={"e1": "abc"},
    reader="extractive",
    judge="token_f1",
    embedder="all-MiniLM-L6-v2",
    tokenizer="qwen2.5-72b-instruct",
    proposer="template",
    search="f00d",
)
FILES = ("policy.json", "state.json", "manifest.json")


@pytest.fixture
def lookup(six_questions):
    return LookupPolicy(("domain",), shrunk=False).fitted(six_questions, CONTEXT)


@pytest.fixture
def frozen_dir(tmp_path, lookup, six_questions):
    freeze(tmp_path / "seed-3", lookup, PROVENANCE, evaluate_policy(lookup, six_questions, 1e-4))
    return tmp_path / "seed-3"


def test_what_is_loaded_is_what_was_frozen(frozen_dir, lookup, six_questions):
    loaded = load_frozen(frozen_dir)
    assert loaded.fitted == lookup
    assert loaded.name == "lookup by domain (raw)"
    assert loaded.provenance == PROVENANCE
    assert loaded.validation == evaluate_policy(lookup, six_questions, 1e-4)
    assert loaded.manifest_sha256 == file_sha256(frozen_dir / "manifest.json")
    for labels in (True, False):
        for question in policy_inputs(six_questions, labels):
            assert loaded.select(question) == lookup.select(question)


def test_it_explains_itself(frozen_dir):
    loaded = load_frozen(frozen_dir)
    assert loaded.explain(PolicyInput("why?", {"domain": "Game"}, 9)) == "lookup by domain: Game -> S"
    assert loaded.explain(PolicyInput("why?", {}, 9)) == "lookup by domain: any domain -> T"


def test_the_manifest_says_what_made_it(frozen_dir):
    manifest = json.loads((frozen_dir / "manifest.json").read_bytes())
    assert manifest["package_version"] == __version__
    assert manifest["provenance"]["reader"] == "extractive"
    assert manifest["sha256"] == {name: file_sha256(frozen_dir / name) for name in FILES[:2]}


def test_freezing_twice_gives_the_same_bytes(frozen_dir, tmp_path, lookup):
    freeze(tmp_path / "again", lookup, PROVENANCE, load_frozen(frozen_dir).validation)
    for name in FILES:
        assert (frozen_dir / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_another_provenance_is_another_manifest(frozen_dir, tmp_path, lookup):
    other = freeze(tmp_path / "other", lookup, replace(PROVENANCE, split_seed=4), load_frozen(frozen_dir).validation)
    assert other.manifest_sha256 != load_frozen(frozen_dir).manifest_sha256


@pytest.mark.parametrize("name", FILES[:2])
@pytest.mark.parametrize("change", [lambda content: content + b" ", lambda content: content[:-2] + b"?\n", lambda _: b""])
def test_a_changed_file_is_refused(name, change, frozen_dir):
    path = frozen_dir / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ArtifactError, match=rf"{name} was changed.*mesa optimize"):
        load_frozen(frozen_dir)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(name, frozen_dir):
    (frozen_dir / name).unlink()
    with pytest.raises(ArtifactError, match=rf"{name} .*mesa optimize"):
        load_frozen(frozen_dir)


def test_nothing_frozen_names_the_command(tmp_path):
    with pytest.raises(ArtifactError, match="mesa optimize"):
        load_frozen(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"3", b"{}", b'{"sha256": []}', b'{"sha256": {"policy.json": 1}}']
)
def test_a_damaged_manifest_is_refused(content, frozen_dir):
    (frozen_dir / "manifest.json").write_bytes(content)
    with pytest.raises(ArtifactError, match="mesa optimize"):
        load_frozen(frozen_dir)


def test_a_policy_of_another_version_is_named(frozen_dir):
    policy, manifest = frozen_dir / "policy.json", json.loads((frozen_dir / "manifest.json").read_bytes())
    policy.write_text('{"type": "evolved"}')
    manifest["sha256"]["policy.json"] = file_sha256(policy)
    manifest.pop("seal")
    write_sealed_json(frozen_dir / "manifest.json", manifest)
    with pytest.raises(PolicyError, match="unknown policy type 'evolved'"):
        load_frozen(frozen_dir)


def test_after_a_kill_there_is_no_half_frozen_policy(frozen_dir, lookup):
    """A directory in the way of a file stops the freeze at that file, as a kill would."""
    for blocked in ("state.json", "policy.json"):
        path = frozen_dir / blocked
        path.unlink()
        path.mkdir()
        with pytest.raises(ArtifactError):
            freeze(frozen_dir, FixedPolicy(3).fitted(None, CONTEXT), PROVENANCE, None)
        with pytest.raises(ArtifactError, match=r"manifest\.json is not there"):
            load_frozen(frozen_dir)
        path.rmdir()


def test_hostile_labels_survive_freezing(tmp_path, make_matrix, six_questions):
    hostile = ["\x00", "\ud800", '"}{', "שלום", "../../x", "->"]
    labels = [(f"e{k}", domain, None) for k, domain in enumerate(hostile)]
    table = make_matrix(labels, six_questions.scores, six_questions.tokens)
    fitted = LookupPolicy(("domain",), shrunk=False).fitted(table, CONTEXT)
    loaded = freeze(tmp_path, fitted, PROVENANCE, evaluate_policy(fitted, table, 1e-4))
    questions = policy_inputs(table, labels=True)
    assert loaded.fitted.choices(questions).tolist() == fitted.choices(questions).tolist()
    assert len(set(loaded.fitted.state["cells"])) == 7


SANDBOX = open_sandbox(SETTINGS.policies.sandbox)
IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from mesa_pipeline.policies.base import policy_inputs
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.search.freeze import load_frozen
from tests.search.searches import SETTINGS, search_data
frozen = load_frozen(Path(sys.argv[1]), open_sandbox(SETTINGS.policies.sandbox))
data = search_data()
asked = [*policy_inputs(data.train, True), *policy_inputs(data.validation, True)]
print(json.dumps([[frozen.select(question) for question in asked[:5]], frozen.fitted.choices(asked).tolist()]))
"""


@pytest.fixture
def code():
    data = search_data()
    return ExecutablePolicy("analogy 02-explore", learning("qa_type", 1), SANDBOX).fitted(data.train, data.context)


@pytest.fixture
def frozen_code(tmp_path, code):
    data = search_data()
    values = fit_values(data.train, ("domain",), data.context)
    freeze(tmp_path / "code", code, PROVENANCE, evaluate_policy(code, data.validation, 1e-6), values, SANDBOX)
    return tmp_path / "code"


def test_code_is_frozen_as_a_source_that_people_can_read(frozen_code, code):
    assert (frozen_code / "policy.py").read_text() == code.policy.spec()["source"]
    assert json.loads((frozen_code / "policy.json").read_bytes()) == {"type": "executable", "title": "analogy 02-explore"}
    manifest = json.loads((frozen_code / "manifest.json").read_bytes())
    assert set(manifest["sha256"]) == {"policy.json", "state.json", "policy.py", "values.json"}
    loaded = load_frozen(frozen_code, SANDBOX)
    assert loaded.fitted == code
    assert loaded.values is not None


def test_what_is_served_is_what_was_scored_in_another_process_as_well(frozen_code, code):
    data = search_data()
    asked = [*policy_inputs(data.train, True), *policy_inputs(data.validation, True)]
    scored = code.choices(asked).tolist()
    assert len(set(scored)) > 1
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(frozen_code)]
    served = json.loads(subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True).stdout)
    assert served == [scored[:5], scored]


@pytest.mark.parametrize("name", ["policy.py", "policy.json", "state.json", "values.json"])
@pytest.mark.parametrize("tamper", [lambda path: path.write_bytes(path.read_bytes() + b"\n"), lambda path: path.unlink()])
def test_tampering_with_any_file_is_noticed(name, tamper, frozen_code):
    tamper(frozen_code / name)
    with pytest.raises(ArtifactError, match=rf"{name.replace('.', '[.]')} (was changed|is missing).*mesa optimize"):
        load_frozen(frozen_code, SANDBOX)


def test_a_source_put_beside_another_policy_is_not_read(frozen_dir, lookup):
    (frozen_dir / "policy.py").write_text(reading("S"))
    assert load_frozen(frozen_dir, SANDBOX).fitted == lookup


def test_freezing_something_else_leaves_nothing_behind(frozen_code, lookup, six_questions):
    freeze(frozen_code, lookup, PROVENANCE, evaluate_policy(lookup, six_questions, 1e-4))
    assert sorted(path.name for path in frozen_code.iterdir()) == sorted(FILES)


def test_code_is_loaded_with_a_sandbox_only(frozen_code):
    with pytest.raises(PolicyError, match="sandbox"):
        load_frozen(frozen_code)


@pytest.mark.parametrize("state", [None, [], 0, "", {"\x00": "\ud800"}])
def test_any_state_is_frozen_as_it_is(state, tmp_path):
    source = reading("S").replace("def select", "def fit(rows, ctx):\n    return []\ndef select")
    fitted = replace(ExecutablePolicy("p", source, SANDBOX).fitted(table("lamp"), CONTEXT), state=state)
    assert (
        freeze(tmp_path, fitted, PROVENANCE, evaluate_policy(fitted, table("door"), 0.0), sandbox=SANDBOX).fitted.state == state
    )


def test_the_provenance_names_proposer_and_search(frozen_code):
    manifest = json.loads((frozen_code / "manifest.json").read_bytes())
    assert manifest["provenance"] == asdict(PROVENANCE)


class Weak(Sandbox):
    """A sandbox of a system that cannot confine."""

    @property
    def confinement(self):
        return Confinement((), ("open a file",))


@pytest.mark.parametrize(
    ("proposer", "allow_weak", "is_run"),
    [
        ("template", False, True),
        ("llm:some-model:1a2b", False, False),
        ("p", False, False),
        ("llm:some-model:1a2b", True, True),
    ],
)
def test_in_a_weak_sandbox_code_that_a_model_wrote_is_refused(proposer, allow_weak, is_run, tmp_path, code):
    weak = Weak(SETTINGS.policies.sandbox.model_copy(update={"allow_weak": allow_weak}))
    worth = evaluate_policy(code, search_data().validation, 1e-6)
    frozen = freeze(tmp_path, code, replace(PROVENANCE, proposer=proposer), worth, sandbox=weak)
    if is_run:
        frozen.require_strong()
    else:
        with pytest.raises(PolicyError, match="weak sandbox"):
            frozen.require_strong()


def test_in_a_strong_one_it_runs_and_what_is_no_code_needs_none(frozen_code, frozen_dir):
    load_frozen(frozen_code, SANDBOX).require_strong()
    load_frozen(frozen_dir).require_strong()
