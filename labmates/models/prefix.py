"""Prompt prefixes for caching: the beginning that all agents of a run share, and continued conversations.

Both are marked on the messages as data. Providers with explicit caches get their marks from `cache_marks`; the caches
of others detect repeated prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from langchain_core.messages import BaseMessage, ToolMessage

from labmates.budgets.tokens import text_of

CACHE_FIELD: Final = "cache_control"
"""The servers' name of Anthropic's marks, also in refusals."""
MARKS: Final = ("shared_chars", "continued")
"""Our marks, in LangChain's ``additional_kwargs``."""
_SHARED, _CONTINUED = MARKS
_EPHEMERAL: Final = {"type": "ephemeral"}
_POINT: Final = {"cachePoint": {"type": "default"}}

Block = dict[str, Any]
Marker = Callable[[Sequence[BaseMessage]], list[BaseMessage]]
"""Adds a provider's cache marks to a prompt."""


def shared_chars(message: BaseMessage) -> int:
    """The number of leading characters that all agents of the run share; 0 if unknown."""
    return int(message.additional_kwargs.get(_SHARED, 0))


def mark_shared(message: BaseMessage, chars: int) -> BaseMessage:
    """The message with its first `chars` characters marked as shared."""
    return _with(message, _SHARED, chars) if chars else message


def mark_continued(message: BaseMessage) -> BaseMessage:
    """The message, marked as the opening of a conversation of several calls, each repeating the call before."""
    return _with(message, _CONTINUED, True)


def is_continued(message: BaseMessage) -> bool:
    """Whether a message opens a conversation of several calls."""
    return bool(message.additional_kwargs.get(_CONTINUED))


def cache_marks(provider: str, model: str) -> Marker | None:
    """The function that adds a provider's cache marks; None for a cache that detects repeated prefixes.

    Marks follow the shared beginning, and the end of a continued conversation. A prompt that is sent once gets no mark
    at its end, since writing to these caches costs more than other input.
    """
    if provider in ("anthropic", "anthropic_bedrock"):
        return partial(_marked, mark=lambda text: [{**_text(text), CACHE_FIELD: _EPHEMERAL}], after_tools=True)
    if provider == "bedrock_converse" and ("anthropic." in model or "amazon.nova" in model):
        # Nova refuses a mark beside the result of a tool.
        return partial(_marked, mark=lambda text: [_text(text), _POINT], after_tools="anthropic." in model)
    return None


def _marked(
    messages: Sequence[BaseMessage], mark: Callable[[str], list[Block]], after_tools: bool
) -> list[BaseMessage]:
    marked = list(messages)
    if marked and (chars := shared_chars(marked[0])):
        text = text_of(marked[0].content)
        marked[0] = _with_blocks(marked[0], [*mark(text[:chars]), _text(text[chars:])])
    if any(map(is_continued, marked)) and (after_tools or not isinstance(marked[-1], ToolMessage)):
        marked[-1] = _with_blocks(marked[-1], mark(text_of(marked[-1].content)))
    return marked


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _with_blocks(message: BaseMessage, blocks: list[Block]) -> BaseMessage:
    return message.model_copy(update={"content": blocks})


def _with(message: BaseMessage, name: str, value: object) -> BaseMessage:
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, name: value}})
