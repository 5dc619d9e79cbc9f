"""Forking a run: a new run that has the first events of another one, and goes on from there under another condition.

What it has taken over is told again from the record when it is executed, as in a run that was interrupted. So that
the story stays one, a change is refused under which what was recorded would not have come about: before anything is
stored, the fork is told to the end of what it has, and every recorded step must be met.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from labmates._version import __version__
from labmates.budgets.money import show_dollars
from labmates.errors import UsageError, explain, unknown_name
from labmates.models.catalog import Catalog
from labmates.records.bodies import Body
from labmates.records.events import ChargeEvent, Event, body_numbers
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import RunRecord, new_run_id
from labmates.records.store import Store
from labmates.studies.rerun import NoModels, NoSandboxes, rerun
from labmates.studies.salted import check_salt
from labmates.studies.session import checked
from labmates.studies.settings import RunSettings
from labmates.workflows.experiment import Condition, condition_of
from labmates.workflows.sandbox_pool import SandboxPool

_PAID = ("llm_call", "tool_call")
"""Types of the events that stand for a step which is told again."""


async def fork(
    store: Store, run_id: str, *, at: int, changes: Mapping[str, Any], settings: RunSettings | None = None
) -> RunRecord:
    """Enter a fork of a run into the store and return it; it waits to be gone on with, as an interrupted run does.

    Parameters
    ----------
    at
        Number of the first event that the fork does not take over; a step that is cut through by it is left out whole.
    changes
        New values of the condition: by field, ``FIELD.KEY`` for one entry of a field that holds several. Where a field
        holds none but there is another called ``FIELD_for``, that one's entry is meant (``model.writing``).
    settings
        How models are reached and where code runs; by default as in the run.

    Raises
    ------
    UsageError
        If there is no such run or event, the run's data are of another salt, a change is invalid there, or
        a model can't be asked.
    """
    origin = await asyncio.to_thread(store.run, run_id)
    check_salt(origin)
    events, stored = await asyncio.to_thread(lambda: (store.events(run_id), store.bodies(run_id)))
    if not 0 <= at <= len(events):
        raise UsageError(f"the run '{run_id}' has no event {at} to fork at; allowed: 0 to {len(events)}")
    settings = settings or RunSettings.model_validate(origin.settings)
    catalog = Catalog(settings.models)
    condition = changed(condition_of(origin), changes, catalog)
    settings = settings.resolved(catalog).model_copy(update={"salt": origin.settings.get("salt")})
    await checked([condition], settings)
    first = events[: whole_steps(events, at)]
    bodies = _bodies_of(first, stored)
    spent = sum(event.amount for event in first if isinstance(event, ChargeEvent))
    if condition.pool is not None and condition.pool < spent:
        raise UsageError(
            f"a budget of {show_dollars(condition.pool)} is too small at event {len(first)} of the run '{run_id}': "
            f"{show_dollars(spent)} are spent there already"
        )
    run = RunRecord(
        id=new_run_id(),
        kind=origin.kind,
        key=condition.key,
        replicate=origin.replicate,
        seed=origin.seed,
        condition=condition.model_dump(mode="json"),
        models=condition.models(),
        status="interrupted",
        settings=settings.model_dump(mode="json"),
        started=time.time(),
        version=__version__,
        attempt=1,
        origin=f"{run_id}@{len(first)}",
    )
    await _check_story(run, condition, first, bodies)
    await asyncio.to_thread(store.create, run, events=first, bodies=bodies)
    return run


def changed(condition: Condition, changes: Mapping[str, Any], catalog: Catalog | None = None) -> Condition:
    """A condition with other values; `catalog` collects how new models are reached.

    Raises
    ------
    UsageError
        If there is no change, a field is unknown or can't be changed in the middle of a run, or a value is wrong.
    """
    if not changes:
        raise UsageError(
            "a fork needs a change, for instance model.writing=scripted:hasty; to continue unchanged, resume the run"
        )
    data = condition.model_dump(mode="json")
    for name, value in changes.items():
        _change(condition, data, name, value)
    try:
        new = type(condition).model_validate(data, context=catalog)
    except ValidationError as error:
        raise UsageError(explain(error)) from error
    if new.key == condition.key:
        raise UsageError(f"these changes do not alter the condition: {', '.join(changes)}")
    return new


def _change(condition: Condition, data: dict[str, Any], name: str, value: Any) -> None:
    field, _, key = name.partition(".")
    if field in condition.material or field == "seed":
        raise UsageError(f"a fork can't change {field}: the events so far belong to other data; start a new run")
    if field not in type(condition).model_fields:
        raise unknown_name(f"parameter of a {condition.kind} run", field, type(condition).model_fields)
    if key and not _has_entries(condition, field):
        if not _has_entries(condition, f"{field}_for"):
            raise UsageError(f"{field} is one value and has no entry '{key}'")
        field = f"{field}_for"
    if not key:
        data[field] = value
        return
    entries = data.setdefault(field, {})
    # The key of an entry may hold dots, as names of models do.
    while (head := key.partition(".")[0]) != key and isinstance(entries.get(head), dict):
        entries, key = entries[head], key.partition(".")[2]
    entries[key] = value


def _has_entries(condition: Condition, field: str) -> bool:
    return isinstance(getattr(condition, field, None), Mapping | BaseModel)


def whole_steps(events: Sequence[Event], at: int) -> int:
    """The number of of the first `at` events a fork can take over: whole steps, and nothing of the judges.

    The events of one step stand together; its charge comes last.
    """
    judged = next((n for n, event in enumerate(events) if event.type in ("score", "judge_call", "label")), len(events))
    at = min(at, judged)
    if 0 < at < len(events) and isinstance(events[at], ChargeEvent) and events[at].step == events[at - 1].step:
        return at - 1
    return at


def _bodies_of(events: Sequence[Event], bodies: Sequence[Body]) -> list[Body]:
    """The bodies up to the last that is named, without a gap: new ones are numbered on from them."""
    last = max((number for event in events for number in body_numbers(event)), default=0)
    return [body for body in bodies if body.number <= last]


async def _check_story(run: RunRecord, condition: Condition, events: Sequence[Event], bodies: list[Body]) -> None:
    """Tell the fork what it has, up to its first new step.

    Raises
    ------
    UsageError
        If a recorded step is not met on the way.
    """
    recorder = _Telling(events, bodies)
    try:
        await rerun(run, condition, recorder, NoModels(), SandboxPool(NoSandboxes(), 1))
    except NewStepError:
        pass
    except Exception as error:
        raise UsageError(f"this change is invalid at event {len(events)}: {error}") from error
    for number, event in enumerate(events):
        if event.type in _PAID and event.step and (event.type, event.step) not in recorder.told:
            raise UsageError(
                f"this change is invalid at event {len(events)}: it would have altered the step '{event.step}' "
                f"(event {number}) or its causes; fork at event {number} or earlier"
            )


class _Telling(Recorder):
    """A recorder in memory that knows what of its record was told again."""

    def __init__(self, events: Sequence[Event], bodies: list[Body]) -> None:
        super().__init__(None, None, events=events, bodies=bodies)
        self.told: set[tuple[str, str]] = set()

    def done(self, kind: str, step: str) -> Event | None:
        self.told.add((kind, step))
        return super().done(kind, step)
