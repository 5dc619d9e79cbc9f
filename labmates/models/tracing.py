"""LangSmith, where its environment variables switch it on: traces go out in the background and never hold a run up.

LangChain and LangGraph trace by themselves; what is set here is how the client behaves when LangSmith is slow or
can't be reached. Left alone it tries again for up to a minute at the end of the process, and prints a part of the
key.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

CONNECT_MS, READ_MS = 2_000, 5_000
LAST_FLUSH_SECONDS = 5.0
"""The time that the end of a session waits for the last traces to go out."""


def is_traced() -> bool:
    """Whether the environment asks for traces, without importing LangSmith."""
    names = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING")
    return any(os.environ.get(name, "").lower() == "true" for name in names)


@asynccontextmanager
async def traced(notify: Callable[[str], None] | None) -> AsyncIterator[None]:
    """Trace what happens within to LangSmith, if the environment asks for it.

    Parameters
    ----------
    notify
        Told once, in words, if LangSmith can't be reached.
    """
    if not is_traced():
        yield
        return
    # At exit the client's threads must not keep the process.
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
