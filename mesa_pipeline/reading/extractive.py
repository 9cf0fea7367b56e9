"""The offline reader: no language model, quotes from the evidence only.

Three ways to answer, by what the question asks and the evidence is:

- actions of named steps are listed or counted (``action_lists``);
- of what people said, the best phrase is quoted, or the date worked out for a question that begins with "when";
- of everything else, those clauses are quoted that maximise the expected token F1 (``quoting``), each after its step.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mesa_pipeline.config import ExtractiveSettings
from mesa_pipeline.reading.action_lists import list_actions
from mesa_pipeline.reading.answer_model import AnswerModel, load_answer_model
from mesa_pipeline.reading.features import FeatureBuilder
from mesa_pipeline.reading.phrases import find_phrases
from mesa_pipeline.reading.questions import QuestionView, view_question
from mesa_pipeline.reading.quoting import Option, Quote, QuotingRules, choose_quotes, split_clauses
from mesa_pipeline.reading.relative_dates import find_date, tell_when
from mesa_pipeline.reading.relevance import Candidate, Material, SectionMemory, find_candidates, gather
from mesa_pipeline.types import Answer, ComposedEvidence

VERSION = 1
MOSTLY = 0.5
PASSAGE_SHARE = 0.5

logger = logging.getLogger(__name__)


class ExtractiveReader:
    """A deterministic reader; see the module.

    Args:
        settings: Lengths and prices of quoting.
        model: The fitted weights; by default those that ship with the package.
    """

    name = "extractive"

    def __init__(self, settings: ExtractiveSettings, model: AnswerModel | None = None) -> None:
        self._settings = settings
        self._model = model or load_answer_model()
        self._memory = SectionMemory()
        self._rules = QuotingRules(
            settings.min_words, settings.max_words, settings.repeat_worth, settings.quote_cost, settings.citation_worth
        )

    def identity(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "version": VERSION,
            "settings": self._settings.model_dump(mode="json"),
            "weights": self._model.fingerprint,
            "fitted_on": self._model.fitted_on,
        }

    def answer(self, question: str, task: str, composed: ComposedEvidence) -> Answer:
        """Quote an answer from the evidence; empty where nothing in it bears on the question."""
        try:
            return Answer(self._read(view_question(question), composed))
        except Exception as error:  # the promise of Reader.answer: one question's failure is recorded, the rest goes on
            logger.exception("the extractive reader failed on %r", question[:200])
            return Answer("", error=f"{type(error).__name__}: {error}")

    def _read(self, question: QuestionView, composed: ComposedEvidence) -> str:
        material = gather([self._memory.index(section.text) for section in composed.sections])
        listed = list_actions(question, material, self._settings.max_words)
        if listed:
            return listed
        candidates = find_candidates(question, material, self._settings.max_units)
        if not candidates:
            return ""
        if is_dialogue(candidates):
            return self._read_dialogue(question, material, candidates[: self._settings.max_spoken_units])
        return self._quote(question, material, candidates)

    def _quote(self, question: QuestionView, material: Material, candidates: Sequence[Candidate]) -> str:
        builder = FeatureBuilder(question, material, candidates)
        units = builder.units()
        table = builder.words(units)
        chances = self._model.word_chances(table).tolist()
        citations = self._model.citation_chances(units).tolist()
        options = [
            Option(candidate.unit, chances[start:end], split_clauses(candidate.unit), citation)
            for candidate, start, end, citation in zip(candidates, table.starts, table.starts[1:], citations, strict=False)
        ]
        quotes = choose_quotes(options, self._model.expected_words(question), self._rules)
        order = {candidate.unit: candidate.order for candidate in candidates}
        return render_quotes(sorted(quotes, key=lambda quote: (quote.unit.source.steps[:1], order[quote.unit])))

    def _read_dialogue(self, question: QuestionView, material: Material, candidates: Sequence[Candidate]) -> str:
        best = max(candidates, key=lambda candidate: candidate.matched + PASSAGE_SHARE * candidate.passage_matched)
        said = find_date(best.unit.source.time)
        if said is not None and question.asks_when:
            return tell_when(best.unit.text, said)
        builder = FeatureBuilder(question, material, candidates)
        table = find_phrases(question, candidates, builder, builder.units())
        if not table.phrases:
            return best.unit.text
        phrase = table.phrases[int(self._model.phrase_scores(table.features).argmax())]
        return Quote(candidates[phrase.candidate].unit, phrase.span).text


def is_dialogue(candidates: Sequence[Candidate]) -> bool:
    """Whether most of the evidence is what someone said at some time."""
    told = sum(bool(candidate.unit.source.speaker or candidate.unit.source.time) for candidate in candidates)
    return told >= MOSTLY * len(candidates)


def render_quotes(quotes: Sequence[Quote]) -> str:
    """Quotes one after another, each step named once before what it says."""
    parts: list[str] = []
    shown: tuple[int, ...] = ()
    for quote in quotes:
        steps = quote.unit.source.steps[:1]
        parts.append(f"Step {steps[0]}: {quote.text}" if steps and steps != shown else quote.text)
        shown = steps
    return "; ".join(parts)
