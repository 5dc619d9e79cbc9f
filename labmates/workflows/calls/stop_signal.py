"""Graceful stop: steps in progress finish, and no new step starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from labmates.errors import LabmatesError

T = TypeVar("T")


class StoppedError(LabmatesError):
    """The run was asked to stop before its next step."""


class StopSignal:
    """Asks runs to stop at their next step."""

    def __init__(self) -> None:
        self.pulled = asyncio.Event()

    def pull(self) -> None:
        """Let no further step begin."""
        self.pulled.set()


class Steps:
    """The steps of one run that go on: model calls and pieces of code.

    Parameters
    ----------
    stop_signal
        Asks the run to stop; None where nobody does.
    """

    def __init__(self, stop_signal: StopSignal | None = None) -> None:
        self._stop_signal = stop_signal or StopSignal()
        self._going_on = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Make one step.

        Raises `StoppedError` if the run is to stop: when the steps of its other agents have ended, which leaving would
        cut off.
        """
        if self._stop_signal.pulled.is_set():
            await self._quiet.wait()
            raise StoppedError("stopped")
        self._going_on += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._going_on -= 1
            if not self._going_on:
                self._quiet.set()

    async def waiting(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Wait for something that costs nothing, and give it up when the run is to stop.

        Raises `StoppedError` as `step` does.
        """
        if not self._stop_signal.pulled.is_set():
            work, stop = asyncio.ensure_future(begin()), asyncio.ensure_future(self._stop_signal.pulled.wait())
            try:
                await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    return work.result()
            finally:
                work.cancel()
                stop.cancel()
        await self._quiet.wait()
        raise StoppedError("stopped")
