"""Runs Mem0 for one store at a time."""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from serving import serve

ALL = 1_000_000


def build(request: Mapping[str, Any]) -> dict[str, Any]:
    """Add chunks one after the other to a new store; returns what is in it at the end, oldest first.

    The request holds ``chunks``, each with ``messages`` and ``metadata``, and what ``opened`` needs.
    """
    events: Counter[str] = Counter()
    with opened(request) as memory:
        for chunk in request["chunks"]:
            added = memory.add(chunk["messages"], user_id=request["store"], metadata=chunk["metadata"])
            events.update(result["event"] for result in added["results"])
        facts = memory.get_all(user_id=request["store"], limit=ALL)["results"]
    facts.sort(key=lambda fact: (fact["created_at"], fact["memory"]))
    return {
        "facts": [{"text": fact["memory"], "metadata": fact.get("metadata") or {}} for fact in facts],
        "events": dict(events),
    }


def search(request: Mapping[str, Any]) -> list[tuple[str, float]]:
    """What the package itself finds among ``facts`` for a ``question``, at most ``limit`` of them; for comparing with."""
    with opened(request) as memory:
        for text in request["facts"]:
            memory.add([{"role": "user", "content": text}], user_id=request["store"], infer=False)
        found = memory.search(request["question"], user_id=request["store"], limit=request["limit"])["results"]
    return [(fact["memory"], fact["score"]) for fact in found]


@contextmanager
def opened(request: Mapping[str, Any]) -> Iterator[Any]:
    """A new store in ``folder``, which is removed afterwards; models are asked at ``url`` with ``key``."""
    from mem0 import Memory

    folder = Path(request["folder"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    memory = Memory.from_config(configuration(request, folder))
    try:
        yield memory
    finally:
        memory.close()
        memory.vector_store.client.close()
        shutil.rmtree(folder, ignore_errors=True)


def configuration(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The package's own settings."""
    endpoint = {"openai_base_url": request["url"], "api_key": request["key"], "model": request["model"]}
    return {
        "llm": {"provider": "openai", "config": {**endpoint, "temperature": 0.0, "max_tokens": request["max_tokens"]}},
        "embedder": {"provider": "openai", "config": endpoint},
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "path": str(folder / "qdrant"),
                "on_disk": True,
                "collection_name": "episode",
                "embedding_model_dims": request["dimensions"],
            },
        },
        "history_db_path": str(folder / "history.db"),
        "custom_fact_extraction_prompt": request["extraction_prompt"],
        "custom_update_memory_prompt": request["update_prompt"],
    }


if __name__ == "__main__":
    serve({"build": build, "search": search})
