import logging

from mesa_pipeline.stages.split import read_split, split
from tests.pipeline import copy_of


def test_what_a_split_cannot_cover_is_said_when_it_is_drawn(prepared, tmp_path, caplog):
    context = copy_of(prepared, tmp_path)
    context.layout.split(0).unlink()
    with caplog.at_level(logging.WARNING):
        split(context, 0)
        warnings = read_split(context, 0).warnings
        assert warnings, "ten episodes of a dozen task types cannot all be in every part"
        assert caplog.messages == [f"split seed 0: {line}" for line in warnings]
        caplog.clear()
        assert split(context, 0).kept == 1
    assert caplog.messages == []
