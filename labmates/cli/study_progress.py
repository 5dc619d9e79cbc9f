"""The progress of a running study: one live line on a terminal, now and then a plain one elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from labmates.budgets.money import show_dollars
from labmates.cli.console import err, notify
from labmates.errors import LabmatesError

if TYPE_CHECKING:
    from labmates.records.store import Store
    from labmates.records.studies import Counts
    from labmates.studies.spec import StudySpec

_LIVE_SECONDS, _PLAIN_SECONDS = 1.0, 30.0


@asynccontextmanager
async def following(store: Store, spec: StudySpec) -> AsyncIterator[Callable[[str], None]]:
    """Show the progress of a study; gives a function that shows a line that the user should know."""
    if err().is_terminal:
        with err().status(f"{spec.name} …") as shown:
            following = asyncio.create_task(_follow(store, spec, _LIVE_SECONDS, shown.update))
            async with _ended(following):
                yield notify
    else:
        async with _ended(asyncio.create_task(_follow(store, spec, _PLAIN_SECONDS, notify))):
            yield notify


async def _follow(store: Store, spec: StudySpec, pause: float, show: Callable[[str], None]) -> None:
    from labmates.records.studies import study_counts

    started, first = time.monotonic(), None
    while True:
        with suppress(LabmatesError):  # The work itself will tell if the store is gone.
            counts = await asyncio.to_thread(study_counts, store.database, spec.name)
            ended = counts.of("completed", "exhausted", "failed")
            first = ended if first is None else first
            show(f"{spec.name}: {_line(counts, ended, ended - first, time.monotonic() - started)}")
        await asyncio.sleep(pause)


def _line(counts: Counts, ended: int, new: int, seconds: float) -> str:
    parts = [f"{ended:,} of {counts.total:,} runs ended", f"{counts.of('running'):,} going on"]
    if counts.of("failed"):
        parts.append(f"{counts.of('failed'):,} failed")
    parts.append(f"{show_dollars(counts.spent)} spent")
    if new and counts.total > ended:
        parts.append(f"about {_duration((counts.total - ended) * seconds / new)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@asynccontextmanager
async def _ended(task: asyncio.Task[None]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
