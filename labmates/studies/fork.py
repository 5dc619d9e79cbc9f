"""Forks: a new run with the first events of another one, continued under another condition.

The inherited events are replayed when the fork is executed, as in a resumed run. Changes that are inconsistent with
them are refused: before anything is stored, the fork is replayed to its last event, and every recorded step must occur.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from labmates._version import __version__
from labmates.budgets.money import show_dollars
from labmates.errors import UsageError, explaining, unknown_name
from labmates.models.catalog import Catalog
from labmates.records.bodies import Body
from labmates.records.events import ChargeEvent, Event, body_numbers
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import RunRecord, new_run_id
from labmates.records.store import Store
from labmates.sandboxes.pool import SandboxPool
from labmates.studies.made import made_of
from labmates.studies.replay import RecordedHub
from labmates.studies.rerun import NoSandboxes, rerun
from labmates.studies.runs import check_salt
from labmates.studies.session import checked
from labmates.studies.settings import RunSettings
from labmates.util.seeds import derive
from labmates.workflows.protocol.experiment import Condition, condition_of

_PAID = ("llm_call", "tool_call")
"""Types of events whose steps are replayed."""


@dataclass(frozen=True)
class Branch:
    """A fork that is not in the store yet."""

    run: RunRecord
    # What it has from its origin.
    first: Sequence[Event]
    bodies: Sequence[Body]
    rest: Sequence[Event]  # the later events of the origin

    def has(self, run: RunRecord) -> bool:
        """Whether a run is a continuation of it."""
        return (run.fork_point, run.key) == (self.run.fork_point, self.run.key)

    def continuation(self, number: int) -> RunRecord:
        """The record of one continuation, from 1; each draws its models' replies anew.

        Its id follows from what it is, so that it is inserted once, whoever asks for it.
        """
        before = f"{self.run.continuation}." if self.run.continuation else ""
        origin = f"{self.run.fork_point}#{before}{number}"
        return replace(self.run, id=f"{derive(self.run.seed, origin, self.run.key, bits=40):010x}", origin=origin)


async def fork(
    store: Store, run_id: str, *, at: int | str, changes: Mapping[str, Any], settings: RunSettings | None = None
) -> RunRecord:
    """Insert a fork of a run into the store and return it; it can be resumed like an interrupted run.

    See `branch`.
    """
    made = await branch(store, run_id, at=at, changes=changes, settings=settings)
    await asyncio.to_thread(store.create, made.run, events=made.first, bodies=made.bodies)
    return made.run


async def branch(
    store: Store, run_id: str, *, at: int | str, changes: Mapping[str, Any] | None, settings: RunSettings | None = None
) -> Branch:
    """A fork of a run, checked but not inserted.

    `at` is the number of the first event that the fork leaves out, or the step, team or agent with which the rest
    begins; a step that it splits is left out whole. `changes` are new values of the condition by field, or
    ``FIELD.KEY`` for one entry; an entry of a single-valued field belongs to ``FIELD_for`` (``model.writing``); None
    continues unchanged. `settings` are by default the run's. Raises `UsageError` if the run or the event is unknown,
    the run's data have another salt, a change is invalid there, or a model can't be called.
    """
    origin = await asyncio.to_thread(store.run, run_id)
    run_id = origin.id
    check_salt(origin)
    events, stored = await asyncio.to_thread(lambda: (store.events(run_id), store.bodies(run_id)))
    at = at if isinstance(at, int) else first_of(events, at, run_id)
    if not 0 <= at <= len(events):
        raise UsageError(f"the run '{run_id}' has no event {at} to fork at; allowed: 0 to {len(events)}")
    settings = settings or RunSettings.model_validate(origin.settings)
    catalog = Catalog(settings.models)
    condition = condition_of(origin)
    if changes is not None:
        condition = changed(condition, changes, catalog)
    settings = settings.resolved(catalog).model_copy(update={"salt": origin.settings.get("salt")})
    await checked([condition], settings)
    first = events[: whole_steps(events, at)]
    # Without gaps, since new bodies continue the numbering.
    last_body = max((number for event in first for number in body_numbers(event)), default=0)
    bodies = [body for body in stored if body.number <= last_body]
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
        made=made_of(condition),
        attempt=1,
        origin=f"{run_id}@{len(first)}{f'#{origin.continuation}' if origin.continuation else ''}",
    )
    await _check_replay(run, condition, first, bodies)
    return Branch(run, first, bodies, events[len(first) :])


def first_of(events: Sequence[Event], name: str, run_id: str) -> int:
    """The number of the first event of a step (or the beginning of its name), a team or an agent.

    Raises `UsageError` if there is none.
    """
    for number, event in enumerate(events):
        if name in (event.team, event.agent) or f"{event.step}/".startswith(f"{name}/"):
            return number
    known = dict.fromkeys(name for event in events for name in (event.team, event.agent) if name)
    raise unknown_name(f"step, team or agent of the run '{run_id}'", name, known)


def changed(condition: Condition, changes: Mapping[str, Any], catalog: Catalog | None = None) -> Condition:
    """A condition with other values; `catalog` collects the connections of new models.

    Raises `UsageError` if nothing changes, a field is unknown or can't change in the middle of a run, or a value is
    invalid.
    """
    if not changes:
        raise UsageError(
            "a fork needs a change, for instance model.writing=scripted:hasty; to continue unchanged, resume the run"
        )
    data = condition.model_dump(mode="json")
    for name, value in changes.items():
        _change(condition, data, name, value)
    with explaining():
        new = type(condition).model_validate(data, context=catalog)
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
    # The key of an entry may contain dots, like names of models.
    while (head := key.partition(".")[0]) != key and isinstance(entries.get(head), dict):
        entries, key = entries[head], key.partition(".")[2]
    entries[key] = value


def _has_entries(condition: Condition, field: str) -> bool:
    return isinstance(getattr(condition, field, None), Mapping | BaseModel)


def whole_steps(events: Sequence[Event], at: int) -> int:
    """The number of the first `at` events that a fork can inherit: complete steps, without judges' events.

    The events of a step are contiguous; its charge comes last.
    """
    judged = next((n for n, event in enumerate(events) if event.type in ("score", "judge_call", "label")), len(events))
    at = min(at, judged)
    if 0 < at < len(events) and isinstance(events[at], ChargeEvent) and events[at].step == events[at - 1].step:
        return at - 1
    return at


async def _check_replay(run: RunRecord, condition: Condition, events: Sequence[Event], bodies: list[Body]) -> None:
    """Replay the fork up to its first new step. Raises `UsageError` if a recorded step does not occur."""
    recorder = _ReplayRecorder(events, bodies)
    try:
        await rerun(run, condition, recorder, RecordedHub(Recorder(None, None), {}), SandboxPool(NoSandboxes(), 1))
    except NewStepError:
        pass
    except Exception as error:
        raise UsageError(f"this change is invalid at event {len(events)}: {error}") from error
    for number, event in enumerate(events):
        if event.type in _PAID and event.step and (event.type, event.step) not in recorder.replayed:
            raise UsageError(
                f"this change is invalid at event {len(events)}: it would have altered the step '{event.step}' "
                f"(event {number}) or its causes; fork at event {number} or earlier"
            )


class _ReplayRecorder(Recorder):
    """A recorder in memory that collects the replayed steps."""

    def __init__(self, events: Sequence[Event], bodies: list[Body]) -> None:
        super().__init__(None, None, events=events, bodies=bodies)
        self.replayed: set[tuple[str, str]] = set()

    def done(self, kind: str, step: str) -> Event | None:
        self.replayed.add((kind, step))
        return super().done(kind, step)
