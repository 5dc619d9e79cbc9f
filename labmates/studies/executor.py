"""Executors of other packages: clusters for a study's workers, and for the work of one large run.

An executor is chosen as ``NAME`` or ``NAME:ADDRESS``. This module is light: ``labmates study run --help`` imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

from labmates.errors import unknown_name
from labmates.registry import Registry

if TYPE_CHECKING:
    from labmates.studies.spec import StudySpec
    from labmates.workflows.calls.stop_signal import StopSignal

LOCAL: Final = "local"
"""In place of an executor: this machine."""


class Executor(Protocol):
    """A cluster; with an `address` of None, one that is started on this machine."""

    def connected(self, address: str | None, *, cpus: int) -> AbstractContextManager[Any]:
        """Connect this process for the work of a run, and yield what executes it, such as the module ``ray``.

        Raises
        ------
        UsageError
            If the cluster is unreachable.
        """

    async def work_on(
        self,
        url: str,
        spec: StudySpec,
        *,
        workers: int,
        address: str | None,
        stop_signal: StopSignal,
        notify: Callable[[str], None],
    ) -> int:
        """Execute runs of a study in the store at `url` until none is left; returns the number of runs ended meanwhile.

        Raises
        ------
        UsageError
            If the cluster is unreachable or can't use the store, or the runs can't be executed.
        LabmatesError
            If workers fail; the study can be resumed.
        """


EXECUTORS: Registry[Executor] = Registry("executor", "labmates.executors")
"""All executors by name."""


def executor_at(chosen: str) -> tuple[Executor, str | None]:
    """The executor of ``NAME:ADDRESS``, and the address. Raises `UsageError` if there is none of this name."""
    name, _, address = chosen.partition(":")
    EXECUTORS.refuse_missing(name)
    if name not in EXECUTORS:
        raise unknown_name("executor", name, [LOCAL, *EXECUTORS])
    return EXECUTORS.get(name), address or None
