"""The progress of a running study: one live line on a terminal, now and then a plain one elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from labmates.cli.console import err, notify
from labmates.studies.progress import polled

if TYPE_CHECKING:
    from labmates.records.store import Store
    from labmates.studies.spec import StudySpec

_LIVE_SECONDS, _PLAIN_SECONDS = 1.0, 30.0


@asynccontextmanager
async def following(store: Store, spec: StudySpec) -> AsyncIterator[Callable[[str], None]]:
    """Show the progress of a study; gives a function that shows a line that the user should know."""
    if err().is_terminal:
        with err().status(f"{spec.name} …") as shown:
            async with polled(store, spec.name, _LIVE_SECONDS, lambda _, line: shown.update(line)):
                yield notify
    else:
        async with polled(store, spec.name, _PLAIN_SECONDS, lambda _, line: notify(line)):
            yield notify
