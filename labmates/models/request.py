"""A request to a model, and the attempt at it that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
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
    `tool_choice` is a tool's name, `ANY_TOOL`, or empty for an optional call. `origin` distinguishes calls with equal
    contents.
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
    origin: str = ""


Send = Callable[[Request, dict[str, Any]], Awaitable[BaseMessage]]
"""Sends a request once, with these parameters, through a provider's chat model."""


BYTES_PER_TOKEN = 64
"""Maximum bytes per token in a whole reply: a long word, or a rare character as JSON escapes, with some margin."""
BYTES_PER_EVENT = 1_024
"""The same in a streamed reply, where each token is an event with an envelope."""
ENVELOPE_BYTES = 262_144
"""Maximum bytes of a reply besides its tokens."""
_MOST_STEPS = 10


class Attempt:
    """An attempt, with a time limit in `seconds` and the request's output limit.

    The time counts from when the request is on the wire, and only while the event loop runs: a reply that arrived while
    the process was busy is not late. `origin` (agent and run) distinguishes calls of the same content. `is_sent` tells
    that the request is on the wire, so that the provider may bill it. `cost` is the cost in the response's headers, in
    micro-dollars.
    """

    def __init__(self, seconds: float, output_tokens: int, origin: str = "") -> None:
        self.is_sent = False
        self.cost: int | None = None
        self.origin = origin
        self._seconds = seconds
        self._output_tokens = output_tokens

    def most_bytes(self, *, streamed: bool) -> int:
        """Maximum bytes of the reply."""
        return ENVELOPE_BYTES + self._output_tokens * (BYTES_PER_EVENT if streamed else BYTES_PER_TOKEN)

    @asynccontextmanager
    async def under_way(self) -> AsyncIterator[asyncio.Timeout]:
        """Make this the current attempt and start its clock; raises `TimeoutError` at the time limit."""
        loop = asyncio.get_running_loop()
        step = self._seconds / _MOST_STEPS
        waited, last = 0.0, loop.time()
        async with asyncio.timeout(None) as timer:
            ticking: asyncio.TimerHandle

            def tick() -> None:
                nonlocal waited, last, ticking
                now = loop.time()
                # A blocked loop reads nothing, so that time does not count.
                waited += min(now - last, 1.5 * step) if self.is_sent else 0.0
                last = now
                if waited >= self._seconds:
                    timer.reschedule(now)
                else:
                    ticking = loop.call_later(step, tick)

            token = UNDER_WAY.set(self)
            tick()
            try:
                yield timer
            finally:
                UNDER_WAY.reset(token)
                ticking.cancel()


UNDER_WAY: ContextVar[Attempt | None] = ContextVar("attempt", default=None)
"""The attempt of the current task."""


def on_the_wire() -> None:
    """Mark the request of the current attempt as sent."""
    if (attempt := UNDER_WAY.get()) is not None:
        attempt.is_sent = True
