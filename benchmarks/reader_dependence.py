"""How much the extractive reader's score depends on the evidence it is given, beside a simple overlap reader.

Usage: python benchmarks/reader_dependence.py --workspace DIR [--dataset NAME ...] [--half second] [--sample N]

Mean token F1 in percent over development questions: by subset of structures; on the steps a question names or its annotators
marked; on as many other steps instead; and on the right steps with k random other steps of the episode added.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from reader_cases import Case, CharacterCounter, mean, read_halves

from mesa_pipeline import subsets
from mesa_pipeline.config import load_settings
from mesa_pipeline.evaluation.metrics import token_f1
from mesa_pipeline.reading.compose import Composer
from mesa_pipeline.reading.extractive import ExtractiveReader
from mesa_pipeline.reading.passages import read_passages, split_section, words
from mesa_pipeline.structures.records import serialize_step
from mesa_pipeline.structures.step_references import parse_references
from mesa_pipeline.types import ComposedEvidence, Evidence, EvidenceItem, Step

Read = Callable[[str, ComposedEvidence], str]

SUBSETS = ("S", "T", "G", "V", "R", "ST", "RV", "TGV", "STGVR")
NOISE = (0, 2, 5, 10, 20)
MAX_RIGHT = 10
MAX_CHARS = 8000
OVERLAP_WORDS = 45
SEED = 0


def overlap_reader(question: str, composed: ComposedEvidence) -> str:
    """The reader to beat: the units that share most words with the question, up to 45 words, in the order of the evidence."""
    asked = set(words(question))
    pieces = [piece for section in composed.sections for piece in split_section(section.text)]
    units = [unit for piece in pieces for passage in read_passages(piece) for unit in passage.units]
    units = list({(unit.text, unit.source.steps): unit for unit in units}.values())
    ranked = sorted(range(len(units)), key=lambda position: -len(asked & set(units[position].tokens)))
    chosen: list[int] = []
    left = OVERLAP_WORDS
    for position in ranked:
        left -= len(units[position].tokens)
        if left < 0 and chosen:
            break
        chosen.append(position)
    return " ".join(units[position].text for position in sorted(chosen))


def right_steps(case: Case) -> list[int]:
    """The steps the question names, or else those its annotators marked."""
    named = parse_references(case.question.text, case.trajectory.last_index).indices
    return list(named or case.question.annotated_steps)[:MAX_RIGHT]


def as_records(case: Case, indices: Iterable[int]) -> ComposedEvidence:
    """The records of some steps, as the temporal store would return them."""
    known: dict[int, Step] = {step.index: step for step in case.trajectory.steps}
    found = [known[index] for index in sorted(set(indices)) if index in known]
    items = tuple(EvidenceItem(serialize_step(step, MAX_CHARS).text, (step.index,), is_record=True) for step in found)
    return Composer({"T": Evidence("T", items)}, CharacterCounter()).compose(subsets.encode("T"))


def score(case: Case, answer: str) -> float:
    return 100 * token_f1(case.dataset, answer, case.question.answer or "", case.question.qa_type)


def print_by_subset(cases: Sequence[Case], readers: dict[str, Read]) -> None:
    domains = sorted({case.domain for case in cases})
    print("| reader | subset | F1 | ms | " + " | ".join(domains) + " |\n|" + " --- |" * (4 + len(domains)))
    for name, read in readers.items():
        for codes in SUBSETS:
            composed = [case.compose(subsets.encode(codes)) for case in cases]
            started = time.perf_counter()
            answers = [read(case.question.text, evidence) for case, evidence in zip(cases, composed, strict=True)]
            milliseconds = 1000 * (time.perf_counter() - started) / len(cases)
            scores = [score(case, answer) for case, answer in zip(cases, answers, strict=True)]
            by_domain = [
                mean([s for case, s in zip(cases, scores, strict=True) if case.domain == domain]) for domain in domains
            ]
            cells = " | ".join(f"{value:.1f}" for value in by_domain)
            print(f"| {name} | {'+'.join(codes)} | {mean(scores):.1f} | {milliseconds:.1f} | {cells} |")


def print_dependence(cases: Sequence[Case], readers: dict[str, Read]) -> None:
    generator = np.random.default_rng(SEED)
    asked = [(case, right_steps(case)) for case in cases if right_steps(case)]
    others = [
        [int(index) for index in generator.permutation([step.index for step in case.trajectory.steps]) if index not in right]
        for case, right in asked
    ]
    columns: dict[str, list[ComposedEvidence]] = {
        "wrong steps instead": [as_records(c, other[: len(right)]) for (c, right), other in zip(asked, others, strict=True)]
    }
    for count in NOISE:
        columns[f"right + {count}"] = [
            as_records(case, [*right, *other[:count]]) for (case, right), other in zip(asked, others, strict=True)
        ]
    print(
        f"\n{len(asked)} questions with known steps\n| reader | "
        + " | ".join(columns)
        + " |\n|"
        + " --- |" * (1 + len(columns))
    )
    for name, read in readers.items():
        cells = [
            mean([score(case, read(case.question.text, evidence)) for (case, _), evidence in zip(asked, column, strict=True)])
            for column in columns.values()
        ]
        print(f"| {name} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--dataset", nargs="+", default=["ama_bench", "locomo"])
    parser.add_argument("--half", choices=("first", "second", "both"), default="second")
    parser.add_argument("--sample", type=int, default=0, help="questions to draw; 0 for all")
    arguments = parser.parse_args()
    extractive = ExtractiveReader(load_settings().reading.extractive)
    readers: dict[str, Read] = {
        "overlap": overlap_reader,
        "extractive": lambda question, composed: extractive.answer(question, "", composed).text,
    }
    for dataset in arguments.dataset:
        halves = read_halves(arguments.workspace, dataset)
        cases = halves.first + halves.second if arguments.half == "both" else getattr(halves, arguments.half)
        if arguments.sample:
            drawn = np.random.default_rng(SEED).choice(len(cases), min(arguments.sample, len(cases)), replace=False)
            cases = [cases[position] for position in sorted(drawn)]
        print(f"\n## {dataset}: {len(cases)} questions, {arguments.half} half\n")
        print_by_subset(cases, readers)
        print_dependence(cases, readers)


if __name__ == "__main__":
    main()
