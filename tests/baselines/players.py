"""Stand-ins for language models in the roles of the baselines, replying by what they are asked alone."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mesa_pipeline.llm import ChatModel, Message, Role
from mesa_pipeline.llm.scripted import Script, ScriptedModel


def memgpt(messages: Sequence[Message], seed: int) -> str:
    """Searches twice, for the question and for its first word, and answers with the first line it was shown."""
    asked = messages[0].content.rpartition("# Question")[2].strip()
    if len(messages) < 5:
        query = asked if len(messages) == 1 else asked.partition(" ")[0]
        return json.dumps({"action": "search", "query": query or "anything"})
    return json.dumps({"action": "answer", "answer": messages[2].content.partition("<passages>")[2].strip()[:80] or "none"})


def memorag(messages: Sequence[Message], seed: int) -> str:
    """Recalls the first lines of the history, and the question again."""
    history = messages[0].content.partition("<history>")[2].partition("</history>")[0]
    return "\n".join([*history.splitlines()[:4], messages[0].content.rpartition("# Question")[2][:200]])


def e_mem(messages: Sequence[Message], seed: int) -> str:
    """Summarises, extracts and merges by quoting the beginning of what it is shown."""
    prompt = messages[0].content
    for tag in ("block", "report of"):
        if f"<{tag}" in prompt:
            return prompt.partition(f"<{tag}")[2].partition("\n")[2][:120]
    return "NONE"


def a_mem(messages: Sequence[Message], seed: int) -> str:
    """Names the first words, links the nearest note and describes it anew."""
    prompt = messages[0].content
    if "NO_EVOLUTION" in prompt:
        return "STRENGTHEN AND UPDATE_NEIGHBOR"
    if "LINKS:" in prompt:
        return "LINKS: 0\nTAGS: linked"
    if "NEIGHBOUR:" in prompt:
        return "NEIGHBOUR: 0\nCONTEXT: seen again\nTAGS: seen"
    shown = prompt.partition("<note>")[2] or prompt.partition("# Question")[2]
    return f"KEYWORDS: {', '.join(shown.split()[:4])}\nCONTEXT: a step\nTAGS: step"


def hipporag2(messages: Sequence[Message], seed: int) -> str:
    """Keeps the first and the third fact."""
    return '{"keep": [0, 2]}'


def ama_agent(messages: Sequence[Message], seed: int) -> str:
    """Asks for the first steps, and once they are there for a program, which counts all."""
    prompt = messages[0].content
    if "def search(steps)" in prompt:
        return "```python\nimport re\ndef search(steps):\n    return {'count': len(steps)}\n```"
    return "NEED_CODE: count the steps" if "Step 1\n" in prompt else "NEED_GRAPH: steps 0-3"


PLAYERS: Mapping[str, Mapping[Role, Script]] = {
    "memgpt": {"recall": memgpt},
    "hipporag2": {"recall": hipporag2},
    "a_mem": {"remember": a_mem, "recall": a_mem},
    "memorag": {"recall": memorag},
    "e_mem": {"remember": e_mem, "recall": e_mem},
    "ama_agent": {"recall": ama_agent},
}
"""By the baseline's code and the role; a baseline without an entry asks no model."""


def opener(code: str) -> Callable[..., ChatModel]:
    """Opens the model that plays along with a baseline."""

    def chat(role: Role, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None) -> ChatModel:
        return ScriptedModel(PLAYERS[code][role], f"scripted {role}")

    return chat
