"""Upgrades of older stores with Alembic: one file in ``versions`` for each change of the tables.

To change the tables:

1. Change `labmates.records.schema`, which creates new stores, and set its ``VERSION`` to the next number, say 0012.
2. Add ``versions/0012_NAME.py`` with ``revision = "0012"``, ``down_revision = "0011"`` and a function ``upgrade`` that
   makes the same change with ``alembic.op``. It states its tables and columns itself, since ``schema`` changes further.
   If it works run by run, it loops over `watched(run_ids)`, which reports progress.
3. If the change touches a column that digests cover (`labmates.records.digests.SEALED`), keep the value as it was: an
   upgrade must not invalidate published digests.

Stores of versions before ``schema.OLDEST`` are refused.
"""

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
