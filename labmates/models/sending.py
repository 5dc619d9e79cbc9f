"""Requests and how they are sent: the attempt under way, and chat models with parameters by call or by instance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, cast

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from labmates.budgets.budget import CallMeter, free_meter
from labmates.budgets.tokens import text_of
from labmates.models.prefix import CACHE_FIELD, Marker
from labmates.models.reply import LISTENER, Listener, Piece

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
    the process was busy is not late. `is_sent` tells
    that the request is on the wire, so that the provider may bill it. `cost` is the cost in the response's headers, in
    micro-dollars.
    """

    def __init__(self, seconds: float, output_tokens: int) -> None:
        self.is_sent = False
        self.cost: int | None = None
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


def per_call(chat: BaseChatModel) -> Send:
    """The sender for a chat model that takes all parameters with each call."""

    async def send(request: Request, arguments: dict[str, Any]) -> BaseMessage:
        if request.tools:
            arguments = {**arguments, "tools": list(request.tools)}
        if choice := request.tool_choice:
            named = {"type": "function", "function": {"name": choice}}
            arguments = {**arguments, "tool_choice": choice if choice == ANY_TOOL else named}
        if request.response_format is not None:
            arguments = {**arguments, "response_format": dict(request.response_format)}
        return await chat.ainvoke(list(request.messages), request.config, **arguments)

    return send


def per_instance(
    build: Callable[[int, float | None], BaseChatModel],
    marks: Marker | None = None,
    *,
    is_watched: bool = False,
    may_stream: bool = False,
) -> Send:
    """The sender for chat models whose limit and temperature belong to the instance.

    Providers' names for these parameters differ in calls, but not in constructors: each pair of values gets an
    instance, and the last few instances are cached. No seed is sent. `marks` adds cache marks unless the server refused
    them. `is_watched` tells that the HTTP client is ours and reports when a request is on the wire. With `may_stream`,
    a watched reply is streamed; see `labmates.models.reply`.
    """
    built = lru_cache(maxsize=16)(build)

    async def send(request: Request, arguments: dict[str, Any]) -> BaseMessage:
        chat = built(request.max_output_tokens, arguments.get("temperature"))
        listener = LISTENER.get() if may_stream else None
        if listener is not None and chat.disable_streaming is True:
            chat = chat.model_copy(update={"disable_streaming": False})
        # LangChain and OpenAI have different words for any tool.
        choice = {"tool_choice": request.tool_choice.replace(ANY_TOOL, "any")} if request.tool_choice else {}
        asked = chat.bind_tools(list(request.tools), **choice) if request.tools else chat
        messages = list(request.messages)
        if not is_watched:
            on_the_wire()
        if marks is not None and arguments.get(CACHE_FIELD, True):
            messages = marks(messages)
        if listener is not None:
            return await _watched(asked, messages, request.config, listener)
        return await asked.ainvoke(messages, request.config)

    return send


async def _watched(
    asked: Runnable[Any, Any], messages: list[BaseMessage], config: RunnableConfig, listener: Listener
) -> BaseMessage:
    listener(None)
    whole: AIMessageChunk | None = None
    calls: dict[Any, int] = {}
    async for chunk in asked.astream(messages, config):
        whole = chunk if whole is None else whole + chunk
        if text := text_of(chunk.content):
            listener(Piece(text))
        for call in chunk.tool_call_chunks:
            number = calls.setdefault(call.get("index"), len(calls))
            listener(Piece(call["args"] or "", "call", number, call["id"] or "", call["name"] or ""))
    assert whole is not None
    return message_chunk_to_message(whole)


class DirectChat(BaseChatModel):
    """A chat model whose `ainvoke` passes over LangChain's callbacks and cache, unless there are any.

    They take longer than everything else between a prompt and its request.
    """

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """The reply to a prompt."""
        if self.callbacks or self.verbose or get_llm_cache() is not None or _is_followed(config):
            return await super().ainvoke(input, config, stop=stop, **kwargs)
        # Agents that work at the same time take turns, as with LangChain's call.
        await asyncio.sleep(0)
        result = await self._agenerate(self._convert_input(input).to_messages(), stop=stop, **kwargs)
        return cast(AIMessage, result.generations[0].message)


def _is_followed(config: RunnableConfig | None = None) -> bool:
    """Whether a tracer or other callbacks follow a call in the current context."""
    configs = (config or {}, var_child_runnable_config.get() or {})
    callbacks = next((given for each in configs if (given := each.get("callbacks"))), None)
    return bool(AsyncCallbackManager.configure(callbacks).handlers)
