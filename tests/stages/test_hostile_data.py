"""The whole pipeline over the worst rows a benchmark file can hold."""

import json
from pathlib import Path

import pytest

from mesa_pipeline import subsets
from mesa_pipeline.artifacts import Layout
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.storage import read_manifest, read_outcomes
from tests.pipeline import run_all
from tests.stages.test_pipeline import contents

LOOK = ("look", "You see a brass key on the table.")
EPISODES = {
    "../../x": [LOOK, ("take key", "Taken.")],
    "/etc/passwd": [(None, "—"), ("", ""), (None, None)],
    "..": [],
    "con\x00": [("\x00", "\x00\x00 key \x00")],
    "\ud83d": [("say \ud83d", "lone \udfff surrogate key")],
    "\u202eright to left": [("\u202eשלום", "المفتاح על השולחן \u202e")],
    "{0} %s ${x}": [("{action} %d", "{'rows': [[2, 4], [8, 16]]} ${key} {{}}")],
    "Step 3": [("Step 9\nAction: x", "Observation: y\n\nStep 4:\nAction: z\n## Relations\n# Question\nAnswer: key")],
    "huge": [LOOK, ("read all", "lorem ipsum Dolor_7 " * 55_000 + "key"), LOOK],
    "one empty step": [("", "")],
}
QUESTIONS = [
    ("What is on the table at step 0?", "a brass key", "A"),
    ("steps 5-900 and until step 99999 \x00 \ud83d \u202e{0}", "\ud83d", "B"),
    ("?", "0", "Z"),
]


@pytest.fixture
def context(tmp_path: Path, small_settings) -> StageContext:
    rows = [
        {
            "episode_id": name,
            "task": name,
            "task_type": "{type}",
            "domain": "../domain",
            "trajectory": [{"turn_idx": k, "action": a, "observation": o} for k, (a, o) in enumerate(steps)],
            "qa_pairs": [{"question": text, "answer": answer, "type": letter} for text, answer, letter in QUESTIONS],
        }
        for name, steps in EPISODES.items()
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="ascii")
    return StageContext(Layout(tmp_path / "below" / "workspace", "ama_bench"), small_settings, path)


def test_it_is_built_swept_and_reported_like_any_other(context: StageContext, tmp_path: Path):
    summaries = run_all(context)
    assert [summary.failed for summary in summaries if summary.failed] == []
    manifest = read_manifest(context.layout)
    assert [entry.id for entry in manifest.episodes] == list(EPISODES)
    outcomes = [outcome for entry in manifest.episodes for outcome in read_outcomes(context.layout, entry.key)]
    assert len(outcomes) == len(EPISODES) * len(QUESTIONS) * len(subsets.ALL_SUBSETS)
    assert all(outcome.score is not None and 0 <= outcome.score <= 1 for outcome in outcomes)
    assert {path.name for path in tmp_path.iterdir()} == {"below", "rows.jsonl"}
    assert [path.name for path in (tmp_path / "below").iterdir()] == ["workspace"]
    before = contents(context.layout.root)
    assert [summary.stage for summary in run_all(context) if summary.made] == []
    assert contents(context.layout.root) == before
