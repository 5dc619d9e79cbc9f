"""Asynchronous work from synchronous callers: scripts, and notebooks whose event loop is running."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run asynchronous work and return its result, whether or not an event loop runs in this thread.

    If one runs, the work gets a separate thread and loop, and the caller's loop waits. Ctrl-C, or a notebook's
    *interrupt*, cancels the work and waits for its clean-up; a second one doesn't wait. `work` makes the coroutine in
    the thread that runs it, with the caller's context variables.

    Raises
    ------
    KeyboardInterrupt
        After the work was cancelled.
    BaseException
        Whatever the work raises.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    return _in_thread(work)


def _in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    started: Future[Callable[[], object]] = Future()
    ended: Future[T] = Future()

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        started.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await work()

    def thread() -> None:
        try:
            ended.set_result(asyncio.run(cancellable()))
        except BaseException as error:
            ended.set_exception(error)

    # A daemon, so that a second Ctrl-C can end the process.
    threading.Thread(target=contextvars.copy_context().run, args=(thread,), name="labmates", daemon=True).start()
    try:
        return ended.result()
    except KeyboardInterrupt:
        if not ended.done():
            with suppress(RuntimeError):  # its loop was closed meanwhile
                started.result()()
            ended.exception()
        raise


_log = logging.getLogger(__name__)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` even if cancelled, once or more often; then raise the cancellation.

    An error of `work` after a cancellation is logged.
    """
    doing = asyncio.create_task(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({doing})
        if not doing.cancelled() and (error := doing.exception()) is not None:
            _log.warning("work in progress failed after a cancellation: %s", error)
        raise
