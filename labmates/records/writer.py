"""The writer of a session: what its runs have to write at the same time is written in one transaction."""

from __future__ import annotations

import asyncio

from labmates.records.database import Database
from labmates.records.steps import Attempt, Step, write_steps


class Writer:
    """Writes steps of runs in the order in which they come; for one event loop.

    While a transaction goes on, what comes meanwhile is collected for the next one. What was handed over is written,
    also when whoever waits for it is cancelled. When a step of an attempt could not be written, no later one is: the
    attempt would go on with a gap behind it, which nobody could read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Step, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._broken: dict[Attempt, Exception] = {}

    async def write(self, step: Step) -> None:
        """Write a step.

        Raises
        ------
        LeaseLostError
            If another attempt has the run.
        StoreError
            If it can't be written.
        """
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((step, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await written

    async def _write(self) -> None:
        batch: list[tuple[Step, asyncio.Future[None]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                errors = await asyncio.to_thread(write_steps, self._database, [step for step, _ in batch], self._broken)
                for (_, written), error in zip(batch, errors, strict=True):
                    if written.done():  # no longer awaited
                        continue
                    if error is None:
                        written.set_result(None)
                    else:
                        written.set_exception(error)
        finally:
            # If this was cut off, no writer waits in vain, and later writes start again.
            for _, written in [*batch, *self._waiting]:
                written.cancel()
            self._waiting, self._writing = [], None

    async def close(self) -> None:
        """Wait until all that was handed over is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
