import pytest

from mesa_pipeline.errors import ConfigError
from mesa_pipeline.reading import phrases
from mesa_pipeline.reading.answer_model import WORD_WEIGHTS, AnswerModel, load_answer_model
from mesa_pipeline.reading.features import CITATION_FEATURES, FEATURES, FeatureBuilder
from mesa_pipeline.reading.phrases import find_phrases
from mesa_pipeline.reading.questions import view_question
from mesa_pipeline.reading.relevance import SectionMemory, find_candidates, gather

EMPTY = {"words": {}, "citation": {}, "length": {}, "phrases": {}}
TEXT = "Step 1\nAction: open box\nObservation: a red key lies in the box\n\nStep 2: wait -> nothing"


def test_a_weight_of_an_unknown_feature_is_refused():
    with pytest.raises(ConfigError, match="no_such_feature"):
        AnswerModel({**EMPTY, "words": {"no_such_feature": 1.0}})


def test_feature_names_are_unique():
    for names in (WORD_WEIGHTS, CITATION_FEATURES, phrases.FEATURES):
        assert len(set(names)) == len(names)


def test_features_have_the_shape_their_names_say():
    question = view_question("What key is in the box?")
    material = gather([SectionMemory().index(TEXT)])
    candidates = find_candidates(question, material, 10)
    builder = FeatureBuilder(question, material, candidates)
    units = builder.units()
    table = builder.words(units)
    total = sum(len(candidate.unit.tokens) for candidate in candidates)
    assert table.features.shape == (total, len(FEATURES))
    assert table.starts[-1] == total
    found = find_phrases(question, candidates, builder, units)
    assert found.features.shape == (len(found.phrases), len(phrases.FEATURES))
    asked = table.features[:, FEATURES.index("asked")]
    tokens = [token for candidate in candidates for token in candidate.unit.tokens]
    assert {token for token, is_asked in zip(tokens, asked, strict=True) if is_asked} == {"key", "box"}


def test_without_weights_every_chance_is_even():
    question = view_question("What key?")
    material = gather([SectionMemory().index(TEXT)])
    builder = FeatureBuilder(question, material, find_candidates(question, material, 10))
    assert set(AnswerModel(EMPTY).word_chances(builder.words(builder.units())).tolist()) == {0.5}


def test_longer_questions_expect_longer_answers():
    model = load_answer_model()
    short = model.expected_words(view_question("Which step failed?"))
    long = model.expected_words(
        view_question("Explain why " + "the agent changed its plan and what followed from it " * 5 + "?")
    )
    assert 1.0 <= short < long
