"""The contents of a call of a model, and the kind of function that sends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from labmates.budgets.budget import CallMeter, free_meter

ANY_TOOL: Final = "required"
"""The tool choice that forces a call of any tool."""


@dataclass(frozen=True)
class Request:
    """The contents of a call; `tools` and `response_format` follow OpenAI's protocol, `config` is LangChain's.

    `insisted` are required parameters: if the server refuses one, the call fails. `meter` pays for the attempts.
    `tool_choice` is a tool's name, `ANY_TOOL`, or empty for an optional call.
    """

    messages: Sequence[BaseMessage]
    tools: Sequence[dict[str, Any]]
    seed: int
    max_output_tokens: int
    temperature: float | None
    config: RunnableConfig
    insisted: frozenset[str] = frozenset()
    meter: CallMeter = field(default_factory=free_meter)
    response_format: Mapping[str, Any] | None = None
    tool_choice: str = ""


Send = Callable[[Request, dict[str, Any]], Awaitable[BaseMessage]]
"""Sends a request once, with these parameters, through a provider's chat model."""
