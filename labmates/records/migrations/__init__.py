"""Upgrades of older stores with Alembic: one file in ``versions`` for each change."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from alembic import op

T = TypeVar("T")
Watch = Callable[[int, int], None]
"""Told how many runs a migration has done, and of how many."""


def watched(runs: Sequence[T]) -> Iterator[T]:
    """Yield the runs of a migration, and report progress."""
    config = op.get_context().config
    watch: Watch | None = config.attributes.get("watch") if config else None
    for done, run in enumerate(runs):
        if watch is not None:
            watch(done, len(runs))
        yield run
    if watch is not None:
        watch(len(runs), len(runs))
