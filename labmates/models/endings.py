"""How a model's message ended: by the model, by a filter, or by the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage

from labmates.budgets.tokens import text_of
from labmates.budgets.usage import Usage, read_usage
from labmates.models.failures import Failure
from labmates.models.provider_words import finish_word, meaning_of_finish
from labmates.models.reported_costs import cost_of

FILTERED = "filtered"
"""Our field in a message's metadata: why a filter blocked its prompt."""


def stopped_by_server(message: AIMessage) -> Failure | None:
    """The failed attempt in a message that the server ended, not the model; None if there is none.

    A message without content is the model's only if it says how it ended.
    """
    meaning = meaning_of_finish(message.response_metadata)
    word = finish_word(message.response_metadata)
    if meaning == "server":
        reason = f"the server stopped: finish reason '{word}'"
    elif meaning is None and not _has_content(message):
        reason = f"an empty answer with the finish reason '{word}'" if word else "an empty answer without finish reason"
    else:
        return None
    return Failure("retry", reason, usage=_reported(message), cost=cost_of(message))


def filtered_message(failure: Failure) -> AIMessage:
    """The message that stands for the reply to a prompt that a filter of the provider blocked."""
    return AIMessage("", response_metadata={"finish_reason": "content_filter", FILTERED: str(failure)})


def _has_content(message: AIMessage) -> bool:
    has_reasoning = bool(message.additional_kwargs.get("reasoning_content"))
    blocks = message.content if isinstance(message.content, list) else []
    return bool(
        text_of(message.content).strip() or message.tool_calls or message.invalid_tool_calls or has_reasoning or blocks
    )


def _reported(message: AIMessage) -> Usage | None:
    """The reported usage; None if it counts no token."""
    counts = cast("Mapping[str, Any] | None", message.usage_metadata) or {}
    if not counts.get("output_tokens") and not counts.get("input_tokens"):
        return None
    usage, _ = read_usage(counts, prompt=lambda: 0, output=lambda: 0, reasoning=0)
    return Usage(usage.input_tokens, usage.output_tokens)
