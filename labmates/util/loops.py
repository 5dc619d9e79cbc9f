"""Asynchronous work from synchronous callers: scripts, and notebooks whose event loop is running."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import wraps
from inspect import unwrap
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run asynchronous work and return its result, whether or not an event loop runs in this thread.

    If one runs, the work gets a separate thread and loop, and the caller's loop waits. Ctrl-C, or a notebook's
    *interrupt*, cancels the work and waits for its clean-up; a second one doesn't wait. `work` makes the coroutine in
    the thread that runs it, with the caller's context variables.

    Raises whatever the work raises, and `KeyboardInterrupt` after it was cancelled.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    return _in_thread(work)


def blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """An asynchronous function as a synchronous one; see `run_async`."""

    @wraps(work)
    def run(*args: P.args, **named: P.kwargs) -> T:
        return run_async(lambda: work(*args, **named))

    return run


def awaitable(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The asynchronous function of which `blocking` made this one."""
    return cast(Callable[P, Coroutine[Any, Any, T]], unwrap(function))


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


async def in_thread(work: Callable[[], T], *, unless: bool) -> T:
    """The result of `work`, in a thread unless it takes a few milliseconds at most: a thread costs as much."""
    return work() if unless else await asyncio.to_thread(work)


@asynccontextmanager
async def running(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` during the block, and cancel it at the end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Batches(Generic[T, R]):
    """Calls `work` in a thread with all items that arrived since its last call, in their order; for one event loop.

    `work` returns the result of each item, or its error; an error that it raises is that of all its items. A submitted
    item is worked on even if its caller is cancelled.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._working: asyncio.Task[None] | None = None

    async def result(self, item: T) -> R:
        """The result of an item. Raises its error."""
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._working is None:
            self._working = asyncio.create_task(self._run())
        return await result

    async def _run(self) -> None:
        batch: list[tuple[T, asyncio.Future[R]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    results = await asyncio.to_thread(self._work, [item for item, _ in batch])
                except Exception as error:
                    results = [error] * len(batch)
                for (_, waiting), result in zip(batch, results, strict=True):
                    if waiting.done():  # no longer awaited
                        continue
                    if isinstance(result, Exception):
                        waiting.set_exception(result)
                    else:
                        waiting.set_result(result)
        finally:
            # After a cancellation, all callers are released, and later items start again.
            for _, waiting in [*batch, *self._waiting]:
                waiting.cancel()
            self._waiting, self._working = [], None

    async def close(self) -> None:
        """Wait until all submitted items are done."""
        if self._working is not None:
            await asyncio.wait([self._working])
