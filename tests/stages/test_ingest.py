import json

from mesa_pipeline.artifacts import Layout
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.storage import read_manifest, read_questions


def test_questions_without_a_reference_answer_are_left_out_and_counted(tmp_path, small_settings):
    data = tmp_path / "log.json"
    steps = [{"action": "open drawer", "observation": "a key"}]
    questions = [{"question": "What is in it?", "answer": "a key"}, {"question": "Whose is it?"}]
    data.write_text(json.dumps({"id": "mine", "task": "look", "steps": steps, "questions": questions}))
    context = StageContext(Layout(tmp_path / "w", "traces"), small_settings, data)
    summary = ingest(context)
    manifest = read_manifest(context.layout)
    (entry,) = manifest.episodes
    assert [question.text for question in read_questions(context.layout, entry.key)] == ["What is in it?"]
    assert (manifest.question_count, summary.facts["left_out"]) == (1, 1)
    assert "1 questions without a reference answer" in manifest.skipped[0]
