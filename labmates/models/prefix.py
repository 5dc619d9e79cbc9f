"""Prefixes of prompts for caching: the beginning that all agents of a run share, and continued conversations.

Both are marked on the messages as data. Providers whose caches have to be told get marks of their own (`cache_marks`);
the caches of others find repeated prefixes themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage, ToolMessage

from labmates.budgets.tokens import text_of

CACHE_FIELD: Final = "cache_control"
"""What a server calls Anthropic's marks, also where it refuses them."""
_SHARED, _CONTINUED = "shared_chars", "continued"
_EPHEMERAL: Final = {"type": "ephemeral"}
_POINT: Final = {"cachePoint": {"type": "default"}}

Block = dict[str, Any]
Marker = Callable[[Sequence[BaseMessage]], list[BaseMessage]]
"""Adds a provider's cache marks to a prompt."""


def shared_chars(message: BaseMessage) -> int:
    """The number of characters of a message all agents of the run share; 0 where that is not known."""
    return int(message.additional_kwargs.get(_SHARED, 0))


def mark_shared(message: BaseMessage, chars: int) -> BaseMessage:
    """The message with its first `chars` characters marked as shared."""
    return _with(message, _SHARED, chars) if chars else message


def mark_continued(message: BaseMessage) -> BaseMessage:
    """The message, marked as the opening of a conversation of several calls, each of which repeats the call before."""
    return _with(message, _CONTINUED, True)


def is_continued(message: BaseMessage) -> bool:
    """Whether a message opens a conversation of several calls."""
    return bool(message.additional_kwargs.get(_CONTINUED))


def cache_marks(provider: str, model: str) -> Marker | None:
    """The marker of prompts for a provider's cache; None for a cache that finds repeated prefixes itself.

    Marks stand after the shared beginning, and at the end of a conversation that goes on. A prompt that is sent once
    gets none at its end, since what is written to these caches costs more than other input.
    """
    if provider in ("anthropic", "anthropic_bedrock"):
        return _anthropic
    if provider == "bedrock_converse" and "anthropic." in model:
        return _claude_at_bedrock
    if provider == "bedrock_converse" and "amazon.nova" in model:
        return _nova_at_bedrock
    return None


def _anthropic(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return _marked(messages, lambda text: [{**_text(text), CACHE_FIELD: _EPHEMERAL}])


def _claude_at_bedrock(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return _marked(messages, lambda text: [_text(text), _POINT])


def _nova_at_bedrock(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    # Nova refuses a mark beside the result of a tool.
    return _marked(messages, lambda text: [_text(text), _POINT], after_tools=False)


def _marked(
    messages: Sequence[BaseMessage], mark: Callable[[str], list[Block]], *, after_tools: bool = True
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
