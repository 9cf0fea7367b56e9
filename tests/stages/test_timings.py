"""What units took is told of what was made of them, whatever else was made of the same."""

from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm.metering import Cost
from mesa_pipeline.stages.timings import append_cost, read_costs


def test_a_cost_is_of_what_was_made_and_the_latest_of_it_counts(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "synthetic")
    append_cost(layout, "build-G", "a", "by rules", Cost(seconds=1.0))
    append_cost(layout, "build-G", "b", "by rules", Cost(seconds=2.0))
    append_cost(layout, "build-G", "a", "by a model", Cost(seconds=9.0, calls=3, notes={"empty": 1}))
    append_cost(layout, "build-G", "b", "by rules", Cost(seconds=3.0))
    assert read_costs(layout, "build-G", {"b": "by rules", "a": "by rules"}) == {"b": Cost(3.0), "a": Cost(1.0)}
    assert read_costs(layout, "build-G", {"a": "by a model"}) == {"a": Cost(seconds=9.0, calls=3, notes={"empty": 1})}
    assert read_costs(layout, "build-G", {"a": "by hand", "c": "by rules"}) == {}
    assert read_costs(layout, "build-S", {"a": "by rules"}) == {}


def test_a_torn_line_and_one_that_does_not_say_what_was_made_are_passed_over(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "synthetic")
    append_cost(layout, "build-G", "a", "by rules", Cost(seconds=1.0))
    with layout.timings("build-G").open("a") as file:
        file.write('{"key":"a","seconds":7.0}\n{"key":"a","made":"by rules","sec')
    assert read_costs(layout, "build-G", {"a": "by rules"}) == {"a": Cost(seconds=1.0)}
    append_cost(layout, "build-G", "a", "by rules", Cost(seconds=2.0))
    assert read_costs(layout, "build-G", {"a": "by rules"}) == {"a": Cost(seconds=2.0)}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_with_the_file_and_what_to_do(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "synthetic")
    path = layout.timings("build-G")
    path.parent.mkdir(parents=True)
    path.symlink_to("/dev/full")
    with pytest.raises(ArtifactError, match=r"cannot write .*build-G\.jsonl: No space left on device; free space"):
        append_cost(layout, "build-G", "a", "by rules", Cost(seconds=1.0))
