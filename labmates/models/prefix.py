"""The beginning of a prompt that all agents of a run share, marked so that a provider's cache can be told of it."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, SystemMessage

_SHARED = "shared_chars"


def shared_message(shared: str, own: str) -> SystemMessage:
    """Return a system message of what all agents read, and then what this one reads; it knows where the first ends."""
    return SystemMessage(f"{shared}\n\n{own}", additional_kwargs={_SHARED: len(shared)})


def shared_chars(message: BaseMessage) -> int:
    """Return how many characters of a message all agents of the run share; 0 where that is not known."""
    return int(message.additional_kwargs.get(_SHARED, 0))


def mark_shared(message: BaseMessage, chars: int) -> BaseMessage:
    """Return the message with its first `chars` characters marked as shared."""
    marked = {**message.additional_kwargs, _SHARED: chars}
    return message.model_copy(update={"additional_kwargs": marked}) if chars else message
