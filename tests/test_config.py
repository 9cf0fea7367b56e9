import pytest
import yaml

from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ConfigError
from tests.conftest import REPOSITORY

PARAMS = REPOSITORY / "params.yaml"


def test_the_papers_numbers_are_the_defaults(settings):
    assert settings.search.lambda_ == 1e-6
    assert settings.splits.ratio == (2, 2, 6)
    assert len(settings.splits.seeds) == 5
    assert settings.structures.vector.top_k == 5
    assert settings.structures.graph.proximity_weight == 1.25


def test_an_override_beats_the_environment_which_beats_the_file():
    environment = {"MESA_SEARCH__LAMBDA": "0.5", "MESA_STRUCTURES__RAW__TOP_K": "7"}
    found = load_settings(PARAMS, ["search.lambda=0.25"], environment)
    assert found.search.lambda_ == 0.25
    assert found.structures.raw.top_k == 7


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("search.lamda=1", "lamda"),
        ("structures.raw.topk=3", "topk"),
        ("structures.raw.top_k=0", "structures.raw.top_k"),
        ("structures.raw.top_k=many", "structures.raw.top_k"),
        ("search.lambda.x=1", "search.lambda"),
        ("search.lambda", "section.key=value"),
        ("splits.ratio=[1, 2]", "splits.ratio"),
        ("splits.seeds=[0, 0]", "a seed stands twice"),
        ("search.slots=[explore, explore]", "a slot stands twice"),
        ("ablations=[{name: a b, set: []}, {name: A-b, set: []}]", "two ablations share a folder"),
        ("ablations=[{name: ../up, set: []}]", "should match pattern '^[A-Z"),
        ("search.lambda=.inf", "search.lambda: input should be a finite number"),
        ("search.lambda={", "YAML"),
        ("llm.chat.base_url=http://me:secret@host/v1", "llm.chat.base_url"),
        ("llm.embeddings.base_url=host:8001", "llm.embeddings.base_url"),
        ("llm.roles.answer.max_tokens=40000", r"roles.answer.max_tokens \(40000\) leaves no room for a conversation"),
    ],
)
def test_a_wrong_override_is_named(override, said):
    with pytest.raises(ConfigError, match=said.replace(".", r"\.").replace("^[", r"\^\[")):
        load_settings(PARAMS, [override], {})


def test_an_unknown_key_in_the_file_is_refused(tmp_path):
    values = yaml.safe_load(PARAMS.read_text())
    values["structures"]["raw"]["strides"] = 3
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError, match="strides"):
        load_settings(path, environment={})


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [", "\xff\xfe"])
def test_a_file_that_is_not_settings_is_refused(tmp_path, content):
    path = tmp_path / "params.yaml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError):
        load_settings(path, environment={})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_settings(tmp_path / "nowhere.yaml", environment={})


def test_environment_variables_without_a_section_are_not_settings():
    assert load_settings(PARAMS, environment={"MESA_DEV_DATA": "/x"}) == load_settings(PARAMS, environment={})


@pytest.mark.parametrize("profile", ["offline", "local-llm", "paper"])
def test_a_profile_as_it_stands_labels_results_with_its_name(profile):
    assert load_settings(PARAMS, environment={}, profile=profile).profile_label == profile


def test_what_is_changed_of_a_profile_is_part_of_its_label():
    changed = load_settings(PARAMS, ["llm.chat.model=tiny", "run.workers=1"], {}, profile="paper")
    assert changed.profile_label == "paper, but for llm.chat.model"
    environment = {"MESA_READING__READER": "llm"}
    assert load_settings(PARAMS, environment=environment).profile_label == "offline, but for reading.reader"


@pytest.mark.parametrize(
    "number",
    [
        *("search.lambda=0.1", "search.iterations=2", "search.ucb.beta=0.5", "search.labels=false", "search.refit=true"),
        *("llm.chat.thinking=true", "llm.roles.answer.temperature=0.5", "structures.summary.window_chars=4096"),
        *("structures.graph.passage_chars=1000", "structures.graph.focal_relations=9", "structures.temporal.top_k=3"),
        *("structures.vector.top_k=3", "structures.raw.max_window=20", "structures.raw.overlap=0.5"),
    ],
)
def test_no_number_of_the_paper_changes_under_its_name(number: str):
    changed = load_settings(PARAMS, [number], {}, profile="paper")
    assert changed.profile_label == f"paper, but for {number.partition('=')[0]}"


def test_a_profile_is_not_to_be_had_by_its_name_alone():
    with pytest.raises(ConfigError, match="choose one with --profile"):
        load_settings(PARAMS, ["profile=paper"], {})


def test_the_paper_s_profile_has_the_paper_s_numbers():
    paper = load_settings(PARAMS, environment={}, profile="paper")
    assert paper.llm.chat.model == "Qwen/Qwen3-32B"
    assert paper.llm.embedder_name == "Qwen/Qwen3-Embedding-4B"
    assert (paper.search.lambda_, paper.search.ucb.beta, paper.search.iterations) == (1e-6, 0.08, 30)
    assert (paper.structures.vector.top_k, paper.structures.raw.top_k) == (5, 3)
