from dataclasses import replace

import pytest

from mesa_pipeline.config import Variation, load_settings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.stages.ablate import ablate, ablated, find_ablations
from mesa_pipeline.stages.optimize import read_frozen, read_result
from mesa_pipeline.stages.report import gather
from mesa_pipeline.stages.report_search import ablation_contexts
from mesa_pipeline.stages.retrieve import retrieve
from mesa_pipeline.stages.split import split
from mesa_pipeline.stages.sweep import sweep
from mesa_pipeline.stages.test import read_test
from mesa_pipeline.subsets import size
from mesa_pipeline.tracking import NullTracker
from tests.conftest import REPOSITORY
from tests.pipeline import SMALL, copy_of

SEED = 0


@pytest.fixture
def context(finished, tmp_path):
    return copy_of(finished, tmp_path)


def test_an_ablation_lies_beside_what_it_is_compared_with(context):
    before = context.layout.test(SEED).read_bytes()
    ablation = Variation(name="route to one", set=("search.max_structures=1",))
    summary = ablate(context, ablation, SEED, NullTracker())
    choices = read_test(ablated(context, ablation), SEED).choices
    assert summary.made == 2
    assert {size(mask) for mask in choices.values()} == {1}
    assert context.layout.test(SEED).read_bytes() == before
    assert ablate(context, ablation, SEED, NullTracker()).kept == 2


def test_one_that_differs_in_what_is_chosen_alone_takes_the_search_over(context):
    ablation = Variation(name="refit", set=("search.refit=true",))
    ablate(context, ablation, SEED, NullTracker())
    changed = ablated(context, ablation)
    first, second = (sorted(found.layout.policy(SEED).glob("search/*/events.jsonl")) for found in (context, changed))
    assert [log.read_bytes() for log in first] == [log.read_bytes() for log in second]
    assert read_result(changed, SEED).chosen == read_result(context, SEED).chosen
    assert read_frozen(changed, SEED).manifest_sha256 != read_frozen(context, SEED).manifest_sha256


def test_one_that_needs_more_episodes_than_there_are_is_left_out(context):
    small = load_settings(REPOSITORY / "params.yaml", (*SMALL, "splits.ratio=[8, 1, 1]"), {})
    alone = replace(context, settings=small)
    split(alone, SEED)
    summary = ablate(alone, Variation(name="lower bound", set=("search.select=lcb",)), SEED, NullTracker())
    assert (summary.made, summary.failed) == (0, ())
    assert "two validation episodes" in str(summary.facts["left_out"])


@pytest.mark.parametrize("change", ["splits.seeds=[7]", "evaluation.bootstrap_samples=7", "llm.tokenizer=other"])
def test_an_ablation_changes_the_search_alone(context, change):
    with pytest.raises(ConfigError, match="under search and policies only"):
        ablated(context, Variation(name="other", set=(change,)))


def test_an_unknown_name_is_answered_with_the_known_ones(context):
    with pytest.raises(ConfigError, match="without priors"):
        find_ablations(context.settings, ("without sense",))
    assert find_ablations(context.settings, ()) == context.settings.ablations


def test_an_ablation_that_now_means_something_else_is_not_reported(context):
    ablation = Variation(name="refit", set=("search.refit=true",))
    ablate(context, ablation, SEED, NullTracker())
    named = replace(context, settings=context.settings.model_copy(update={"ablations": (ablation,)}))
    assert set(ablation_contexts(named)) == {"refit"}
    other = ablation.model_copy(update={"set": ("search.refit=true", "search.lambda=0.001")})
    redefined = replace(context, settings=context.settings.model_copy(update={"ablations": (other,)}))
    assert ablation_contexts(redefined) == {}


def test_outdated_tests_are_told_once_with_the_command_that_makes_them_anew(context, caplog):
    settings = ["ablations=[{name: refit, set: [search.refit=true]}]"]
    named = replace(context, settings=load_settings(REPOSITORY / "params.yaml", [*SMALL, *settings], {}))
    (ablation,) = named.settings.ablations
    for seed in (0, 1):
        ablate(named, ablation, seed, NullTracker())
    settings.append("structures.raw.top_k=1")
    changed = replace(context, settings=load_settings(REPOSITORY / "params.yaml", [*SMALL, *settings], {}))
    retrieve(changed, "R")
    sweep(changed)
    assert gather(changed).tests == ()
    told = [record.getMessage() for record in caplog.records if "outdated" in record.getMessage()]
    assert len(told) == 2
    assert "seeds 0, 1; run `mesa test`" in told[0]
    assert "seeds 0, 1; run `mesa ablate --only 'refit'`" in told[1]
