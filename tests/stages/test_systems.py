"""Baselines as a run opens them: with an endpoint, shared structures, and the sandbox for what a model writes."""

import dataclasses
from pathlib import Path

import pytest

from mesa_pipeline.artifacts import Layout, read_header
from mesa_pipeline.config import load_settings
from mesa_pipeline.errors import ConfigError
from mesa_pipeline.llm import Message
from mesa_pipeline.policies.sandbox import open_sandbox
from mesa_pipeline.stages.baselines import build_costs, read_answers, run_baseline
from mesa_pipeline.stages.context import StageContext
from mesa_pipeline.stages.ingest import ingest
from mesa_pipeline.stages.storage import read_manifest
from mesa_pipeline.stages.systems import baseline_of
from tests.baselines.players import ama_agent
from tests.conftest import REPOSITORY
from tests.llm.misbehaving_server import Exchange, MisbehavingServer, say, well
from tests.pipeline import SMALL

FEW = ("datasets.synthetic.episodes=3", "datasets.synthetic.questions=2", "llm.embedder=endpoint")


def play(exchange: Exchange) -> None:
    """Summarises, embeds, and plays along with AMA-Agent."""
    if "messages" not in exchange.request.body:
        well(exchange)
        return
    messages = [Message(message["role"], message["content"]) for message in exchange.request.body["messages"]]
    is_summary = "SUMMARY:" in messages[0].content
    say("SUMMARY:\nStep 0: began" if is_summary else ama_agent(messages, 0))(exchange)


def test_programs_of_a_run_are_confined_and_counted(tmp_path: Path) -> None:
    with MisbehavingServer(otherwise=play) as server:
        endpoint = (f"llm.chat.base_url='{server.base_url}'", f"llm.embeddings.base_url='{server.base_url}'")
        overrides = [*SMALL, *FEW, *endpoint, "structures.summary.builder=llm"]
        context = StageContext(Layout(tmp_path, "synthetic"), load_settings(REPOSITORY / "params.yaml", overrides, {}))
        if open_sandbox(context.settings.policies.sandbox).tier != "kernel":
            pytest.skip("this system cannot confine a process")
        ingest(context)
        done = run_baseline(context, "ama_agent")
    assert done.failed == ()
    outcomes = read_answers(context, "ama_agent")
    assert len(outcomes) == read_manifest(context.layout).question_count
    for outcome in outcomes.values():
        notes = outcome.cost.notes
        assert (notes["searches by code"], notes["programs written"]) == (1, 1)
        assert "programs that failed" not in notes
        assert "programs that nothing here can confine" not in notes
        assert outcome.cost.calls == notes["verdicts"] + 1 <= 3
    costs = build_costs(context, "ama_agent")
    assert len(costs) == 3
    assert all(cost.calls >= 1 and cost.embedded_texts >= 1 for cost in costs.values())
    header = read_header(context.layout.answers("ama_agent", read_manifest(context.layout).episodes[0].key))
    assert header is not None
    chat = context.settings.llm.chat.model
    assert header["build"]["embedder"] == context.settings.llm.embeddings.model
    assert chat in header["build"]["summary"]["summarizer"]["model"]
    assert all(chat in model for model in header["retrieve"]["models"])
    rules = dataclasses.replace(context, settings=load_settings(REPOSITORY / "params.yaml", [*SMALL, *FEW], {}))
    assert build_costs(rules, "ama_agent") == {}, "what a language model's summaries took is not what rules take"


@pytest.mark.parametrize("code", ["hipporag2", "memorag"])
def test_an_embedder_that_a_baseline_names_is_the_one_it_asks(tmp_path: Path, code: str) -> None:
    def embedder(*overrides: str) -> str:
        settings = load_settings(REPOSITORY / "params.yaml", overrides, {})
        return str(baseline_of(settings, Layout(tmp_path, "synthetic"), code).build_identity()["embedder"])

    local = "llm.embedder=all-MiniLM-L6-v2"
    assert embedder(local) == "all-MiniLM-L6-v2"
    assert "contriever" in embedder(local, f"baselines.{code}.embeddings.model=facebook/contriever")
    assert embedder("llm.embedder=endpoint", f"baselines.{code}.embeddings.embedder=all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    with pytest.raises(ConfigError, match="behind an endpoint"):
        embedder(f"baselines.{code}.embeddings={{embedder: all-MiniLM-L6-v2, model: facebook/contriever, base_url: null}}")
