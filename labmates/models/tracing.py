"""Tracing to LangSmith, if its environment variables enable it: in the background, without delaying runs.

LangChain and LangGraph trace by themselves; this module configures the client for a slow or unreachable LangSmith. By
default the client retries for up to a minute at the end of the process, and prints a part of the key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
)

CONNECT_MS, READ_MS = 2_000, 5_000
LAST_FLUSH_SECONDS = 5.0
"""Time limit for sending the last traces at the end of a session."""


def is_traced() -> bool:
    """Whether the environment enables tracing; doesn't import LangSmith."""
    names = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING")
    return any(os.environ.get(name, "").lower() == "true" for name in names)


@asynccontextmanager
async def traced(notify: Callable[[str], None] | None) -> AsyncIterator[None]:
    """Trace the block to LangSmith, if the environment enables it.

    `notify` receives one message if LangSmith is unreachable.
    """
    if not is_traced():
        yield
        return
    # The client's threads must not keep the process alive at exit.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    from langsmith.run_trees import get_cached_client
    from urllib3.util import Retry

    failures: list[str] = []

    def failed(error: Exception) -> None:
        if not failures and notify is not None:
            notify(f"LangSmith can't be reached ({type(error).__name__}); the runs continue without traces.")
        failures.append(type(error).__name__)

    logging.getLogger("langsmith").addHandler(logging.NullHandler())
    logging.getLogger("langsmith").propagate = False
    client = await asyncio.to_thread(
        get_cached_client,
        timeout_ms=(CONNECT_MS, READ_MS),
        retry_config=Retry(total=0),
        tracing_error_callback=failed,
    )
    try:
        yield
    finally:
        await asyncio.to_thread(client.flush, 0.0 if failures else LAST_FLUSH_SECONDS)


def new_trace_id() -> UUID | None:
    """The id of a new trace; None without tracing."""
    if not is_traced():
        return None
    from langsmith import uuid7

    return uuid7()


def send_scores(trace: UUID, scores: Iterable[tuple[str, float | None, str]]) -> None:
    """Attach scores (name, value and reason) to a trace as feedback. Blocks; failures are only logged."""
    from langsmith.run_trees import get_cached_client
    from langsmith.utils import LangSmithError

    client = get_cached_client()
    if not client.info.version:  # LangSmith is unreachable
        return
    with suppress(LangSmithError):
        for name, value, reason in scores:
            client.create_feedback(trace, name, trace_id=trace, score=value, comment=reason, stop_after_attempt=1)


@asynccontextmanager
async def tool_trace(name: str, arguments: Mapping[str, Any]) -> AsyncIterator[list[str]]:
    """A trace span of type ``tool`` for a tool outside LangChain; the block adds the output to the list."""
    manager = get_async_callback_manager_for_config(ensure_config())
    run = await manager.on_tool_start({"name": name}, json.dumps(arguments), inputs=dict(arguments))
    output: list[str] = []
    try:
        yield output
    except BaseException as error:
        await run.on_tool_error(error)
        raise
    await run.on_tool_end("".join(output))


class _Hidden(Runnable[Any, Any]):
    """Calls a coroutine function; with callbacks, which take longer than the call, only where somebody listens."""

    def __init__(self, choose: Callable[[Any], Awaitable[Any]]) -> None:
        self.name = choose.__name__
        self._choose = choose
        self._traced = RunnableLambda(choose).with_config(tags=["langsmith:hidden"])

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        raise NotImplementedError("call it with ainvoke")

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        callbacks: Any = (config or {}).get("callbacks")
        if is_traced() or getattr(callbacks, "handlers", callbacks):
            return await self._traced.ainvoke(input, config)
        return await self._choose(input)


def hidden(choose: Callable[[Any], Awaitable[Any]]) -> Runnable[Any, Any]:
    """A routing function of a graph, hidden in traces."""
    return _Hidden(choose)
