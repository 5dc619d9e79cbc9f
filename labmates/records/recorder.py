"""The recorder of a run.

Steps are recorded atomically: all events of a step are emitted without yielding to other tasks, and `flush` writes them
in one transaction. After the process is killed, the store has each step entirely or not at all, and a recorded step
(`done`) is replayed instead of being executed and paid again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from labmates.errors import LabmatesError
from labmates.records.bodies import Bodies, Body
from labmates.records.digests import Chain
from labmates.records.events import Event
from labmates.records.rows import event_rows, sealed
from labmates.records.run import RunRecord, Usage, usage_sum
from labmates.records.steps import Step, Writer, costs

Listener = Callable[[Event], None]


class NewStepError(LabmatesError):
    """A rerun reached a step that is not in the record."""

    def __init__(self, step: str) -> None:
        super().__init__(f"the record does not hold the step '{step}'")
        self.step = step


@dataclass(frozen=True)
class _Sums:
    """Sums over events, in micro-dollars; `bill` is None if a price is unknown."""

    usage: Usage
    bill: int | None
    excess: int
    spent: int


class Recorder:
    """Collects the events and bodies of one run.

    Without a `writer`, they stay in memory. `run` is the claimed run (None without a store); `events` and `bodies` are
    the stored record of a resumed run. `listen` receives each new event.
    """

    def __init__(
        self,
        writer: Writer | None,
        run: RunRecord | None,
        *,
        events: Sequence[Event] = (),
        bodies: Sequence[Body] = (),
        listen: Listener | None = None,
    ) -> None:
        self._writer = writer
        self._run = run
        self._listen = listen
        self._unwritten = len(events)
        self._forgotten, self._past = 0, _Sums(Usage(), 0, 0, 0)
        self._chain = Chain.parse(run.chain if run else "")
        self._cost = run.spent if run else 0
        self.bodies = Bodies(bodies)
        self.events: list[Event] = list(events)
        self._done: dict[tuple[str, str], Event] = {(e.type, e.step): e for e in events if e.step}

    @property
    def run_id(self) -> str:
        """The run's id; empty without a store."""
        return self._run.id if self._run else ""

    def emit(self, *events: Event) -> None:
        """Add events; those of one call are stored in one transaction."""
        for event in events:
            self.events.append(event)
            if event.step:
                self._done[event.type, event.step] = event
            if self._listen is not None:
                self._listen(event)

    def once(self, *events: Event) -> None:
        """Add the events whose steps are not in the record of an earlier attempt."""
        self.emit(*(event for event in events if self.done(event.type, event.step) is None))

    def done(self, kind: str, step: str) -> Event | None:
        """The recorded event of type `kind` of the step `step`, if any."""
        return self._done.get((kind, step))

    def recorded(self, kind: str, step: str) -> Event:
        """The recorded event of type `kind` of the step `step`.

        Raises `NewStepError` if it is not in the record.
        """
        if (event := self.done(kind, step)) is None:
            raise NewStepError(step)
        return event

    async def flush(self) -> None:
        """Write new records to the store."""
        if self._writer is None or self._run is None:
            return
        step = self._take(self._run)
        if step.rows or step.bodies:
            await self._writer.write(step)

    async def finish(self, run: RunRecord) -> RunRecord:
        """Write the run's end and new records in one transaction, and return the run with its digest."""
        step = self._take(run)
        ended = replace(step, run=sealed(step.run), ends=True)
        if self._writer is not None:
            await self._writer.write(ended)
        return ended.run

    def forget(self) -> None:
        """Forget written events, except their sums, and the values of all bodies; no step will be replayed."""
        written, newer = self.events[: self._unwritten], self.events[self._unwritten :]
        self.events = written
        self._past = _Sums(self.usage(), self.bill(), self.excess(), self.spent())
        self.events = newer
        self._forgotten += len(written)
        self._unwritten = 0
        self._done.clear()
        self.bodies.forget()

    @property
    def length(self) -> int:
        """The number of events so far."""
        return self._forgotten + len(self.events)

    def usage(self) -> Usage:
        """The usage of the run so far."""
        return usage_sum([self._past.usage, usage_of(self.events)])

    def bill(self) -> int | None:
        """The providers' charges for the calls so far, in micro-dollars; None if a price is unknown.

        Scripted baselines and cached replies are free.
        """
        charges = [event for event in self.events if event.type == "charge"]
        calls = [event for event in self.events if event.type == "llm_call"]
        lost = {event.step for event in charges if event.uncertain and event.estimated}
        asked = (call for call in calls if not call.cached and not call.model.startswith("scripted:"))
        paid = [call.step for call in asked if call.step not in lost]
        bills = {event.step: event.bill for event in charges}
        # Attempts without a reply whose usage the server reported.
        failed = [event.bill for event in charges if event.uncertain and not event.estimated]
        known = [bill for bill in (self._past.bill, *map(bills.get, paid), *failed) if bill is not None]
        return sum(known) if len(known) == 1 + len(paid) + len(failed) else None

    def excess(self) -> int:
        """The providers' charges beyond the bound of the run, in micro-dollars."""
        return self._past.excess + sum(event.excess for event in self.events if event.type in ("charge", "judge_call"))

    def spent(self) -> int:
        """The charges of the run so far, in micro-dollars."""
        return self._past.spent + sum(event.amount for event in self.events if event.type == "charge")

    def ran_code(self) -> bool:
        """Whether any code ran in a sandbox."""
        return any(event.type == "tool_call" and event.status for event in self.events)

    def _take(self, run: RunRecord) -> Step:
        first = self._unwritten
        self._unwritten = len(self.events)
        events = list(enumerate(self.events[first:], start=self._forgotten + first))
        bodies = self.bodies.take_new()
        rows = event_rows(run.id, events)
        self._chain = self._chain.longer(rows, ((body.number, body.digest) for body in bodies))
        self._cost += costs(events)
        return Step(replace(run, chain=str(self._chain), spent=self._cost), rows, bodies)


def usage_of(events: Sequence[Event]) -> Usage:
    """The usage of a run with these events."""
    calls = [event for event in events if event.type == "llm_call"]
    return Usage(
        llm_calls=sum(not call.is_outside for call in calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        reasoning_tokens=sum(call.reasoning_tokens for call in calls),
        tool_calls=sum(event.type == "tool_call" for event in events),
        failed_replies=sum(event.type == "failed_reply" for event in events),
        cached_tokens=sum(call.cached_tokens for call in calls),
        cache_write_tokens=sum(call.cache_write_tokens for call in calls),
        uncertain_attempts=sum(event.type == "charge" and event.uncertain for event in events),
        uncertain=sum(
            event.real_cost for event in events if event.type == "charge" and event.uncertain and event.estimated
        ),
    )
