"""Interruptible work: Ctrl-C and SIGTERM end it cleanly."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from labmates.workflows.calls.stop_signal import StopSignal

T = TypeVar("T")

STOPPING = "Stopping after calls and code in flight. Press Ctrl-C again to stop at once; nothing is lost."


def run_until_stopped(
    work: Coroutine[Any, Any, T], stop_signal: StopSignal | None = None, notify: Callable[[str], None] | None = None
) -> T | None:
    """Run `work` and return its result; None if it was stopped, after the release of its resources.

    The first Ctrl-C pulls the stop signal, so that the work ends by itself, and `notify` reports that; a second Ctrl-C
    (without a stop signal, the first) stops it at once.
    """
    import asyncio

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if stop_signal is None or stop_signal.pulled.is_set():
                loop.remove_signal_handler(signal.SIGINT)  # from now on, Ctrl-C ends the process
                task.cancel()
                return
            stop_signal.pull()
            if notify is not None:
                notify(STOPPING)

        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(watched())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
