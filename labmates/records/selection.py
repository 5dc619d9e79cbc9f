"""Choosing runs of a store: by id, or by what they are."""

from __future__ import annotations

from collections.abc import Sequence

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store


def select_runs(
    store: Store, ids: Sequence[str] = (), *, kind: str | None = None, study: str | None = None, task: str | None = None
) -> list[RunRecord]:
    """Runs, oldest first: those with these ids, or all, as far as they are of the kind, study and task.

    Raises
    ------
    UsageError
        If there is no run with one of the ids, or none is left.
    """
    chosen = [store.run(run_id) for run_id in dict.fromkeys(ids)] if ids else list(store.runs(kind=kind))
    wanted = {"kind": kind, "study": study, "task": task}
    runs = [
        run
        for run in chosen
        if kind in (None, run.kind) and study in (None, run.study) and task in (None, run.condition.get("task"))
    ]
    if not runs:
        asked = ", ".join(f"{name} '{value}'" for name, value in wanted.items() if value is not None)
        raise UsageError(f"the store {store.shown_url} has no run{f' of {asked}' if asked else ''}")
    return runs
