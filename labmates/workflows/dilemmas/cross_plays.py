"""Cross-plays of social dilemmas out of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.selection import select_runs
from labmates.records.store import Store
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.records import CrossPlay, read_cross_play, told_apart
from labmates.workflows.experiment import condition_of

KIND = DilemmaCondition.kind


def cross_plays(store: Store, run_ids: Sequence[str] = (), *, study: str | None = None) -> list[CrossPlay]:
    """Return the records of the cross-plays of a store that have ended: those with these ids, or all, of a study.

    Mechanisms are called so that runs under other parameters are told apart (`told_apart`).

    Raises
    ------
    UsageError
        If there is none, or one of the ids is not of a cross-play that has ended.
    """
    runs = ended_cross_plays(store, run_ids, study=study)
    mechanisms = told_apart([run.condition for run in runs])
    return [replace(_read(store, run), mechanism=called) for run, called in zip(runs, mechanisms, strict=True)]


def ended_cross_plays(store: Store, run_ids: Sequence[str] = (), *, study: str | None = None) -> list[RunRecord]:
    """Return the runs behind `cross_plays`.

    Raises
    ------
    UsageError
        As `cross_plays` does.
    """
    runs = select_runs(store, run_ids, study=study, kind=None if run_ids else KIND)
    for run in runs if run_ids else ():
        if run.kind != KIND:
            raise UsageError(f"the run '{run.id}' is of the kind {run.kind}, not {KIND}")
    ended = [run for run in runs if run.status == "completed"]
    if not ended:
        raise UsageError(f"none of these {len(runs)} runs of the kind {KIND} has ended")
    return ended


def _read(store: Store, run: RunRecord) -> CrossPlay:
    condition = cast(DilemmaCondition, condition_of(run))
    events = [event for kind in ("decision", "payoff", "label") for event in store.events(run.id, kind=kind)]
    return read_cross_play(run.id, run.condition, condition.names(), events)
