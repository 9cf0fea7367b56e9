"""Data sets by name: those of the sources, and a person's own."""

import pytest

from mesa_pipeline.config import Settings, load_settings
from mesa_pipeline.datasets import DATASETS, dataset_names, dataset_source
from mesa_pipeline.errors import ConfigError, DataError
from tests.conftest import REPOSITORY


def own(value: str) -> Settings:
    return load_settings(REPOSITORY / "params.yaml", [f"datasets.own={value}"], {})


def test_each_source_is_a_data_set_and_so_are_those_of_ones_own():
    names = dataset_names(own("[traces.support, synthetic.other]").datasets)
    assert names == (*DATASETS, "traces.support", "synthetic.other")
    assert dataset_source("traces.support") is DATASETS["traces"]


def test_one_of_an_unknown_source_is_refused_with_the_known_ones():
    with pytest.raises(DataError, match=r"'logs\.support'; known are synthetic"):
        dataset_names(own("[logs.support]").datasets)


@pytest.mark.parametrize(
    "value", ["[support]", "[traces.]", "[traces.A]", "[traces.a.b]", "[traces.../up]", "[traces.a, traces.a]"]
)
def test_a_name_that_cannot_be_a_folder_and_a_variable_or_stands_twice_is_refused(value: str):
    with pytest.raises(ConfigError, match="own"):
        own(value)
