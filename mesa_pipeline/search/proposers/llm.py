"""A language model as proposer (paper, Section 4.2): prompt, reply, gate, and once more with the gate's reasons."""

import logging
from collections import Counter

from mesa_pipeline.config import LlmProposerSettings, SandboxSettings
from mesa_pipeline.errors import GateError, ModelError
from mesa_pipeline.llm import ChatModel, Message
from mesa_pipeline.policies.sandbox.gate import require_valid
from mesa_pipeline.policies.sandbox.leakage import memorised_text
from mesa_pipeline.search.proposers import Proposal, ProposalRequest
from mesa_pipeline.search.proposers.prompt import prompt_fingerprint, request_message, retry_message, system_message
from mesa_pipeline.search.proposers.quoting import cleaned, fenced
from mesa_pipeline.search.proposers.reply import source_in

ERROR_ROLE = "error"
NO_SOURCE = "the reply holds no source: nothing in it defines select"
NO_SOURCE_CHARS = 2000
"""Of a reply without a source, this much is shown to the model again."""
logger = logging.getLogger(__name__)


class LlmProposer:
    """Asks a language model for a candidate.

    A source that the gate or the lint for memorised questions refuses is sent back with the reasons, until there were
    ``settings.max_asks`` replies; the last source is proposed, valid or not. Where the model gives no reply, what there is by
    then is proposed (at first an empty source), and the reason ends the exchange in a message whose role is ``error``.

    Args:
        model: What is asked.
        settings: Lengths and number of asks.
        sandbox: Limits of a policy, which the prompt states.
    """

    def __init__(self, model: ChatModel, settings: LlmProposerSettings, sandbox: SandboxSettings) -> None:
        self._model = model
        self._settings = settings
        self._source_chars = sandbox.source_kb * 1024
        self._system = system_message(sandbox)
        self._fingerprint = prompt_fingerprint(settings, sandbox)

    @property
    def name(self) -> str:
        """Model and wording: under one name, equal requests are asked in equal words."""
        return f"llm:{self._model.name}:{self._fingerprint}"

    @property
    def trusted(self) -> bool:
        """Never: what a model writes runs in a strong sandbox alone."""
        return False

    def propose(self, request: ProposalRequest) -> Proposal:
        """One candidate.

        Raises:
            MissingDependency: The model cannot be reached; the same request may be put again later.
        """
        chars = self._settings.max_prompt_chars - len(self._system.content)
        dialogue = _Dialogue(self._model, request.seed, self._settings.max_reply_chars)
        dialogue.say(self._system)
        dialogue.say(request_message(request, self._settings, chars))
        texts = [question.text for question in request.train.questions]
        source = ""
        for ask in range(1, self._settings.max_asks + 1):
            reply = dialogue.reply()
            if reply is None:
                break
            found = source_in(reply, self._settings.max_reply_chars)
            source = found or source
            reasons = _refusals(found, texts)
            if not reasons or ask == self._settings.max_asks:
                break
            dialogue.answered(
                fenced("python", [cleaned(found, self._source_chars)]) if found else cleaned(reply, NO_SOURCE_CHARS)
            )
            dialogue.say(retry_message(reasons))
        failure = None if source else dialogue.failure or NO_SOURCE
        return Proposal(source, tuple(dialogue.exchange), dict(dialogue.spent), failure)


class _Dialogue:
    """A conversation under way: what the model is shown of it, its record, and what it cost."""

    def __init__(self, model: ChatModel, seed: int, max_reply_chars: int) -> None:
        self._model = model
        self._seed = seed
        self._max_reply_chars = max_reply_chars
        self._shown: list[Message] = []
        self.exchange: list[dict[str, str]] = []
        self.spent: Counter[str] = Counter()
        self.failure: str | None = None

    def say(self, message: Message) -> None:
        self._shown.append(message)
        self.exchange.append({"role": message.role, "content": message.content})

    def reply(self) -> str | None:
        """What the model says next, recorded as far as it is read; ``None`` where it fails on this conversation."""
        self.spent["calls"] += 1
        try:
            completion = self._model.complete(self._shown, self._seed)
        except ModelError as error:
            logger.warning("%s gave no reply: %s", self._model.name, error)
            self.failure = str(error)
            self.exchange.append({"role": ERROR_ROLE, "content": self.failure})
            return None
        self.spent["prompt_tokens"] += completion.prompt_tokens
        self.spent["completion_tokens"] += completion.completion_tokens
        self.exchange.append({"role": "assistant", "content": _storable(completion.text[: self._max_reply_chars])})
        return completion.text

    def answered(self, content: str) -> None:
        """Show the model this as what it said: its replies are as little to be trusted as the policies it writes."""
        self._shown.append(Message("assistant", content))


def _refusals(source: str, texts: list[str]) -> tuple[str, ...]:
    """Why a source will not be tried, as far as can be told without running it."""
    if not source:
        return (NO_SOURCE,)
    try:
        require_valid(source)
    except GateError as error:
        return tuple(map(str, error.violations))
    return tuple(map(str, memorised_text(source, texts)))


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
