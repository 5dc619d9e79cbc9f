"""Formats of ``labmates export`` beyond tables. This module is light: ``labmates export --help`` imports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from labmates.registry import Registry

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

TABLES: Final = ("parquet", "csv", "jsonl")
"""Formats of tables (`labmates.studies.export.export_rows`)."""


class Export(Protocol):
    """Writes whole runs in the format of another program."""

    def __call__(self, store: Store, out: str, runs: Callable[[], Iterable[RunRecord]], /) -> int:
        """Write the runs and return their number.

        Parameters
        ----------
        out
            Where to: the path of a file or folder, or an address.
        runs
            Reads the chosen runs, each time anew.

        Raises
        ------
        UsageError
            If there are no runs, or they can't be written there.
        """


EXPORTS: Registry[Export] = Registry("format", "labmates.exports")
"""All formats of other packages by name."""
