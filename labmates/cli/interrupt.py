"""Work that a user can stop: Ctrl-C and a polite kill end it cleanly."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` and return what it returns; None if it was stopped, after it has put away what it held."""

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(watched())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
