"""The runs that a worker holds: kept claimed while they go on, and stopped when another worker has taken them over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from labmates.records.claims import BEAT_SECONDS, Claims
from labmates.records.database import StoreError
from labmates.records.run import RunRecord
from labmates.records.steps import LeaseLostError

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Lease:
    """A run that this worker holds.

    Attributes
    ----------
    ending
        The end of the run is being written. From then on the run is not stopped: a renewal that does not find it going
        on may just have come after that end, and the store refuses the end of a run that another has taken over.
    lost
        Another worker has taken the run over.
    """

    run: RunRecord
    task: asyncio.Task[Any]
    ending: bool = False
    lost: bool = False


class Leases:
    """The leases of one worker."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._held: dict[str, Lease] = {}

    @contextmanager
    def hold(self, run: RunRecord) -> Iterator[Lease]:
        """Keep a run claimed that the present task executes.

        Raises
        ------
        LeaseLostError
            If another worker has taken it over.
        """
        task = asyncio.current_task()
        assert task is not None
        lease = self._held[run.id] = Lease(run, task)
        try:
            yield lease
        except (asyncio.CancelledError, LeaseLostError):
            if not lease.lost:
                raise
            task.uncancel()
            raise LeaseLostError(run.id) from None
        finally:
            if self._held.get(run.id) is lease:
                del self._held[run.id]

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Renew the leases of the runs that are held, and stop the runs that others have taken over."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT_SECONDS)
                held = list(self._held.values())
                try:
                    lost = await asyncio.to_thread(self._claims.renew, [lease.run for lease in held])
                except StoreError as error:  # The runs' own writes will fail if it does not come back.
                    _log.warning("leases could not be renewed: %s", error)
                    continue
                for lease in held:
                    if lease.run.id in lost and self._held.get(lease.run.id) is lease and not lease.ending:
                        lease.lost = True
                        lease.task.cancel()

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
