"""Answers the questions that ask for actions of named steps: by listing them step by step, or by counting them."""

from collections import Counter

from mesa_pipeline.reading.passages import Unit
from mesa_pipeline.reading.questions import QuestionView, stem_pairs
from mesa_pipeline.reading.relevance import Material


def list_actions(question: QuestionView, material: Material, max_words: int) -> str:
    """The actions a question asks for, at most ``max_words`` words; empty where it asks for none or the evidence tells none.

    Of the actions told for the steps it names, those that mention a thing it names are the answer if there are any ("which
    actions were performed on cup 3"), else all are ("what actions were performed between steps 3 and 9"). A question for how
    many or how often gets each action with its number of times, frequent ones first.
    """
    if not question.asks_for_actions or not question.steps:
        return ""
    actions = _told_actions(question, material)
    actions = [unit for unit in actions if stem_pairs(unit.tokens) & question.pairs] or actions
    if question.forms["asks_count"]:
        counted = Counter(unit.text for unit in actions).most_common()
        return _join([f"{text} ({times} times)" for text, times in counted], max_words)
    return _join([f"Step {unit.source.step}: {unit.text}" for unit in actions], max_words)


def _told_actions(question: QuestionView, material: Material) -> list[Unit]:
    """One action a step, by step; of several tellings the longest."""
    told: dict[int, Unit] = {}
    for section in material.sections:
        for indexed in section.passages:
            step, unit = indexed.passage.source.step, indexed.passage.units[0]
            wanted = step in question.steps and unit.field == "action"
            if step is None or not wanted or (question.excluded and unit.text.lower().startswith(question.excluded)):
                continue
            if step not in told or len(unit.text) > len(told[step].text):
                told[step] = unit
    return [told[step] for step in sorted(told)]


def _join(parts: list[str], max_words: int) -> str:
    kept: list[str] = []
    left = max_words
    for part in parts:
        left -= len(part.split())
        if left < 0 and kept:
            break
        kept.append(part)
    return "; ".join(kept)
