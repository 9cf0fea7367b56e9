"""Stand-ins for language models in the roles of the baselines, replying by what they are asked alone."""

from collections.abc import Callable, Mapping
from typing import Any

from mesa_pipeline.llm import ChatModel, Role
from mesa_pipeline.llm.scripted import Script, ScriptedModel

PLAYERS: Mapping[str, Mapping[Role, Script]] = {}
"""By the baseline's code and the role; a baseline without an entry asks no model."""


def opener(code: str) -> Callable[..., ChatModel]:
    """Opens the model that plays along with a baseline."""

    def chat(role: Role, schema: Mapping[str, Any] | None = None, max_tokens: int | None = None) -> ChatModel:
        return ScriptedModel(PLAYERS[code][role], f"scripted {role}")

    return chat
