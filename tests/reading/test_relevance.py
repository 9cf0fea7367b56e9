import tracemalloc

from mesa_pipeline.reading.questions import view_question
from mesa_pipeline.reading.relevance import SectionMemory, find_candidates, gather
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.types import Step

RECORDS = [
    serialize_step(Step(number, action, observation)).text
    for number, (action, observation) in enumerate(
        [
            ("open door", "the door opens"),
            ("read note", "the password is swordfish"),
            ("open door", "the door opens"),
            ("wait", "nothing"),
        ]
    )
]


def best(question: str, *sections: str, limit: int = 5) -> list[tuple[tuple[int, ...], str]]:
    memory = SectionMemory()
    found = find_candidates(view_question(question), gather([memory.index(text) for text in sections]), limit)
    return [(candidate.unit.source.steps, candidate.unit.text) for candidate in found]


def test_rare_words_count_more_than_common_ones():
    assert best("Which password is for the door?", "\n\n".join(RECORDS))[0] == ((1,), "the password is swordfish")


def test_a_named_step_comes_first_and_its_neighbours_count_too():
    found = best("What happened at step 3?", "\n\n".join(RECORDS))
    assert found[0][0] == (3,)
    assert (2,) in [steps for steps, _ in found]


def test_a_unit_two_sections_share_is_one_candidate_and_marked():
    memory = SectionMemory()
    material = gather([memory.index("\n\n".join(RECORDS)), memory.index(RECORDS[1])])
    (top, *_rest) = find_candidates(view_question("the password"), material, 5)
    assert top.shared
    assert sum(candidate.unit == top.unit for candidate in [top, *_rest]) == 1


def test_nothing_in_common_is_no_candidate():
    assert best("zebra?", "\n\n".join(RECORDS)) == []
    assert best("anything", "") == []


def test_forgetting_changes_no_result():
    texts = [f"Step {number}\nAction: act {number}\nObservation: seen {number} " + "x" * 60 for number in range(20)]
    forgetful, plain = SectionMemory(max_chars=100, max_sections=2), SectionMemory()
    for _ in range(2):
        assert [forgetful.index(text) for text in texts] == [plain.index(text) for text in texts]


def test_the_memory_is_bounded():
    memory = SectionMemory(max_chars=1_000_000, max_sections=4)
    tracemalloc.start()
    for number in range(60):
        memory.index(f"Step {number}\nAction: go\nObservation: " + f"word{number} key\n" * 5000)
        if number == 20:
            early, _ = tracemalloc.get_traced_memory()
    late, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert late < 1.3 * early
