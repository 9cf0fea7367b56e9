from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mesa_pipeline.errors import ArtifactError
from mesa_pipeline.llm import Completion
from mesa_pipeline.llm.cache import ReplyCache, VectorCache, request_key

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.0}


def test_a_reply_comes_back_whole_in_another_process_too(tmp_path: Path):
    reply = Completion("text\x00\u202e{", 7, 3, 2, "length")
    assert ReplyCache(tmp_path / "deep" / "r.sqlite").get(REQUEST) is None
    ReplyCache(tmp_path / "deep" / "r.sqlite").put(REQUEST, reply)
    assert ReplyCache(tmp_path / "deep" / "r.sqlite").get(REQUEST) == reply


def test_the_first_reply_is_kept(tmp_path: Path):
    cache = ReplyCache(tmp_path / "r.sqlite")
    cache.put(REQUEST, Completion("first", 1, 1))
    cache.put(REQUEST, Completion("second", 1, 1))
    assert cache.get(REQUEST) == Completion("first", 1, 1)


def test_the_order_of_fields_does_not_matter():
    assert request_key(REQUEST) == request_key(dict(reversed(REQUEST.items())))
    assert request_key(REQUEST) != request_key({**REQUEST, "temperature": 0.5})


def test_a_request_takes_less_room_than_its_text(tmp_path: Path):
    cache = ReplyCache(tmp_path / "r.sqlite")
    evidence = "\n".join(f"Step {k}: Action: open the door. Observation: the door is open." for k in range(20_000))
    cache.put({**REQUEST, "messages": [{"role": "user", "content": evidence}]}, Completion("yes", 1, 1))
    written = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert written < len(evidence) / 4


@pytest.mark.parametrize("open_cache", [ReplyCache, VectorCache])
def test_a_file_that_is_no_database_is_named(open_cache: type[ReplyCache] | type[VectorCache], tmp_path: Path):
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"this is a note to myself, and no database at all\n" * 100)
    with pytest.raises(
        ArtifactError, match=r"cannot use .*cache\.sqlite: file is not a database; .* choose another --workspace"
    ):
        open_cache(path).put("m", []) if open_cache is VectorCache else open_cache(path).get(REQUEST)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArtifactError, match=r"cannot use .*file.*choose another --workspace"):
        ReplyCache(tmp_path / "file" / "r.sqlite").get(REQUEST)


@hypothesis_settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20), st.text(st.characters(exclude_categories=["Cs"]))
)
def test_a_vector_comes_back_to_the_bit(numbers: list[float], text: str):
    vector = np.array(numbers, dtype=np.float32)
    with TemporaryDirectory() as folder:
        cache = VectorCache(Path(folder, "vectors.sqlite"))
        cache.put("m", [(text, vector)])
        found = cache.get("m", [text, text + "?"])
        assert cache.get("another", [text]) == {}
    assert list(found) == [text]
    assert found[text].dtype == np.float32
    assert found[text].tobytes() == vector.tobytes()
