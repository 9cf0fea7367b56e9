"""What was made with one profile says so, and is never taken for what was made with another."""

from pathlib import Path

import pytest

from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.optimize import read_frozen
from mesa_pipeline.stages.report import gather, report
from tests.pipeline import SMALL

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_frozen_policy_and_the_report_name_the_profile(finished: StageContext):
    assert read_frozen(finished, 0).provenance.profile == "offline"
    provenance = gather(finished).provenance
    assert provenance["profile"] == "offline"
    assert "language model" not in provenance


@pytest.mark.parametrize("profile", ["local-llm", "paper"])
def test_another_profile_reports_nothing_of_it(profile: str, finished: StageContext):
    settings = load_settings(REPOSITORY / "params.yaml", SMALL, {}, profile=profile)
    other = StageContext(finished.layout, settings)
    with pytest.raises(ArtifactError, match="missing or outdated"):
        report(other)
    with pytest.raises(ArtifactError, match="missing or outdated"):
        gather(other)
