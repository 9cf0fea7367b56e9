"""OpenAI chat messages as steps.

One assistant message is one step: its text and its tool calls are the action, and what comes back before the next assistant
message, tool results and the user's words, is the observation. The first user message is the task. System messages instruct the
agent and are no part of what happened; they are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mesa_pipeline.datasets.rows import Fields, to_text
from mesa_pipeline.types import Step

INSTRUCTION_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
ROLES = (*INSTRUCTION_ROLES, "user", "assistant", *RESULT_ROLES)


@dataclass(frozen=True, slots=True)
class ChatTrace:
    """A conversation as a task and the steps taken for it."""

    task: str
    steps: tuple[Step, ...]


@dataclass(slots=True)
class _Call:
    """A tool call and the results that came back for it."""

    id: str
    name: str
    arguments: str
    results: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"{self.name}({self.arguments})"


@dataclass(slots=True)
class _Draft:
    """A step in the making."""

    said: str = ""
    calls: list[_Call] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def finish(self, index: int) -> Step:
        action = [self.said, *(call.text for call in self.calls)]
        label = len(self.calls) > 1
        results = [f"{call.name}: {result}" if label else result for call in self.calls for result in call.results]
        return Step(index, _join(action), _join([*results, *self.heard]))


def read_chat(messages: Sequence[Fields]) -> ChatTrace:
    """Turn a conversation into steps, numbered from zero.

    Raises:
        DataError: A message has an unknown role, a malformed content or tool call, or a tool result answers no call.
    """
    task: str | None = None
    drafts: list[_Draft] = []
    pending: dict[str, _Call] = {}
    for message in messages:
        role = message.values.get("role")
        if role in INSTRUCTION_ROLES:
            continue
        if role == "user" and task is None and not drafts:
            task = _read_content(message)
        elif role == "user":
            drafts = drafts or [_Draft()]
            drafts[-1].heard.append(_read_content(message))
        elif role == "assistant":
            drafts.append(_Draft(_read_content(message), _read_calls(message)))
            pending.update((call.id, call) for call in drafts[-1].calls if call.id)
        elif role in RESULT_ROLES:
            _find_call(message, drafts, pending).results.append(_read_content(message))
        else:
            raise message.error("role", f"one of {', '.join(ROLES)}", "correct the role")
    return ChatTrace(task or "", tuple(draft.finish(index) for index, draft in enumerate(drafts)))


def _read_content(message: Fields) -> str:
    content = message.values.get("content")
    if not isinstance(content, list):
        if content is not None and not isinstance(content, str):
            raise message.error("content", "text, a list of parts, or null", "write it as OpenAI's chat format does")
        return to_text(content)
    return _join([_read_part(part) for part in content])


def _read_part(part: Any) -> str:
    """Text of a content part; of an image or a file only that it was there."""
    if not isinstance(part, dict):
        return to_text(part)
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return to_text(part[key])
    return f"[{part.get('type', 'part')}]"


def _read_calls(message: Fields) -> list[_Call]:
    remedy = "write tool calls as OpenAI's chat format does"
    calls = []
    if message.values.get("tool_calls") is not None:
        for call in message.objects("tool_calls", remedy):
            function = call.object("function", remedy)
            calls.append(_Call(call.optional_text("id"), function.text("name", remedy), function.any_text("arguments")))
    if message.values.get("function_call") is not None:
        function = message.object("function_call", remedy)
        calls.append(_Call("", function.text("name", remedy), function.any_text("arguments")))
    return calls


def _find_call(message: Fields, drafts: Sequence[_Draft], pending: dict[str, _Call]) -> _Call:
    """The call a result answers: by id, or where it gives none, the first unanswered one of the latest step."""
    call_id = message.optional_text("tool_call_id")
    if call_id:
        call = pending.get(call_id)
    else:
        call = next((call for call in (drafts[-1].calls if drafts else []) if not call.results), None)
    if call is None:
        raise message.error(
            "tool_call_id", "the id of a call in an earlier assistant message", "keep calls and results together"
        )
    return call


def _join(texts: Sequence[str]) -> str:
    return "\n".join(text for text in texts if text)
