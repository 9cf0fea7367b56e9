"""Which structure's evidence holds the facts an answer rests on, for each kind of synthetic question.

    python benchmarks/synthetic_evidence.py --episodes 12 --steps 60 --questions 24

A cell is the mean share of a question's facts that stand verbatim in the evidence; the last column but one is the design's own
subset. Text in other words, which a good summary or graph may use, counts as missing: read it as a lower bound for S and G.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from mesa_pipeline.config import SyntheticSettings, load_settings
from mesa_pipeline.datasets.synthetic import design_episode
from mesa_pipeline.llm.local import SentenceTransformerEmbedder
from mesa_pipeline.structures import StructureContext, open_structures

PARAMS = Path(__file__).parent.parent / "params.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--structures", default="STGVR")
    arguments = parser.parse_args()
    settings = load_settings(PARAMS, environment={})
    embedder = SentenceTransformerEmbedder(settings.llm.embedder, settings.llm.embedder_batch_size)
    structures = {
        code: structure
        for code, structure in open_structures(StructureContext(settings, lambda: embedder)).items()
        if code in arguments.structures
    }
    made_with = SyntheticSettings(seed=0, episodes=arguments.episodes, steps=arguments.steps, questions=arguments.questions)
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(arguments.episodes):
        made = design_episode(made_with, number)
        memories = {code: structure.build(made.episode.trajectory) for code, structure in structures.items()}
        for question in made.designed:
            texts = {
                code: "\n".join(item.text for item in structure.retrieve(memories[code], question.draft.text).items)
                for code, structure in structures.items()
            }
            texts["design"] = "\n".join(texts.get(code, "") for code in question.kind.structures)
            row = shares[f"{question.kind.name} ({'+'.join(question.kind.structures)})"]
            for column, text in texts.items():
                row[column].append(sum(fact in text for fact in question.draft.facts) / len(question.draft.facts))
    columns = [*structures, "design"]
    print(f"{'kind':<30}" + "".join(f"{column:>8}" for column in columns) + f"{'n':>6}")
    for kind, row in sorted(shares.items()):
        cells = "".join(f"{100 * sum(row[column]) / len(row[column]):>8.0f}" for column in columns)
        print(f"{kind:<30}{cells}{len(row['design']):>6}")


if __name__ == "__main__":
    main()
