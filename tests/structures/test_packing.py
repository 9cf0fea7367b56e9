"""Steps in packs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mesa_pipeline.structures.packing import packed
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

steps_strategy = st.lists(st.tuples(st.text(max_size=60), st.text(max_size=200)), max_size=30).map(
    lambda pairs: tuple(Step(index, action, observation) for index, (action, observation) in enumerate(pairs))
)


@settings(deadline=None)
@given(steps_strategy, st.integers(1, 400))
def test_packs_partition_the_steps_and_close_before_the_room_is_passed(steps: tuple[Step, ...], room: int) -> None:
    packs = list(packed(steps, room))
    assert tuple(step for pack in packs for step in pack) == steps
    sizes = [sum(len(serialize_step(step).text) for step in pack) for pack in packs]
    assert all(size <= room or len(pack) == 1 for size, pack in zip(sizes, packs, strict=True))
    following = [len(serialize_step(pack[0]).text) for pack in packs[1:]]
    assert all(size + length > room for size, length in zip(sizes, following, strict=False))


def test_a_step_longer_than_the_room_stands_alone() -> None:
    steps = [Step(index, "act", text) for index, text in enumerate(("a", "b" * 500, "c", "d"))]
    assert [[step.index for step in pack] for pack in packed(steps, 100)] == [[0], [1], [2, 3]]
