"""Replay of an ended run: re-execution with recorded replies of models, compared with the record.

Code runs again in sandboxes, and judges score again; model judges answer from the record. What follows a piece of code
is computed from its recorded result, so that two questions get separate answers: whether the record follows from itself
(events, status, metrics, usage and budget), and which code prints something else now.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from labmates._version import __version__
from labmates.agents.transcript import message_to_data, said_in
from labmates.budgets.budget import free_meter
from labmates.budgets.ledger import NO_USAGE, UNLIMITED, JournalLine, Ledger, Reservation, Share
from labmates.budgets.prices import Price
from labmates.budgets.tokens import Usage
from labmates.errors import UsageError
from labmates.judges.panel import make_panel
from labmates.models.errors import ContextOverflowError
from labmates.models.hub import CallParameters, ModelHub
from labmates.models.names import is_own_baseline
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply
from labmates.records.bodies import Bodies, Body
from labmates.records.events import (
    RESULTS,
    ArtifactEvent,
    ChargeEvent,
    Event,
    LLMCallEvent,
    ScoreEvent,
    ToolCallEvent,
    WarningEvent,
    fields_with_bodies,
)
from labmates.records.made import mixtures
from labmates.records.recorder import NewStepError, Recorder
from labmates.records.run import ENDED, RunRecord
from labmates.records.steps import charges
from labmates.records.store import Store
from labmates.sandboxes.pool import SandboxPool
from labmates.studies.made import made_of
from labmates.studies.rejudging import rejudge
from labmates.studies.rerun import Difference, apart, differences_of_run, first_difference, rerun
from labmates.studies.runs import accounted, check_salt, invalid_of, stop_of
from labmates.studies.session import open_sandbox_pool
from labmates.studies.settings import RunSettings
from labmates.workflows.calls.assessing import Judging
from labmates.workflows.calls.call import charged_call, lost_attempts, overflow_steps, recorded_reply
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, condition_of

_TIMES = ("seconds",)
_OF_JUDGES = ("score", "judge_call", "label")
"""Types of events that a rejudgement repeats, if anything."""


@dataclass(frozen=True)
class Replayed:
    """The result of a replay."""

    run: RunRecord
    compared: Mapping[str, int]  # number of compared events by type
    # Number of events that a replay can't repeat, by type: labels, failed or differently versioned judgements, and
    # reasons of failed attempts.
    left_out: Mapping[str, int]
    taken_over: int  # number of events that a fork has from its origin; these are not executed
    differences: tuple[Difference, ...]  # differences in the order of the record, then new events
    is_whole: bool  # whether the replay reached the end of the run; later events don't count as different
    ran: int  # number of cells (calls of code and of packages' tools) that ran again
    cells: tuple[Difference, ...]  # those with another result, in the order of the record, each with its first field

    @property
    def follows(self) -> bool:
        """Whether the record follows from itself: from the recorded replies and results of code."""
        return self.is_whole and not self.differences

    @property
    def is_same(self) -> bool:
        """Whether the record follows from itself, and code printed the same again."""
        return self.follows and not self.cells


class RecordedHub(ModelHub):
    """Answers model calls from the record of a run, by the step in their metadata; overflows of the context recur."""

    def __init__(self, past: Recorder, personas: Mapping[str, str | None]) -> None:
        super().__init__(ModelOptions())
        self._past = past
        self._personas = personas
        self._overflows = overflow_steps(past.events)
        self._lost = lost_attempts(past.events)
        self._prices = {
            event.model: Price.model_construct(input=charge.input_price, output=charge.output_price)
            for event in past.events
            if event.type == "llm_call" and (charge := self._charge(event.step)) and charge.bill is not None
        }

    def _charge(self, step: str) -> ChargeEvent | None:
        return cast(ChargeEvent | None, self._past.done("charge", step))

    def persona(self, model: str) -> str | None:
        """The text of a model's persona in the recorded run."""
        return self._personas.get(model)

    async def call(self, model: str, messages: Sequence[BaseMessage], **parameters: Unpack[CallParameters]) -> Reply:
        """The recorded reply, after the recorded attempts without a reply.

        Raises `ContextOverflowError` if the transcript was too long; `NewStepError` if there is no recorded reply.
        """
        step = str(parameters.get("config", RunnableConfig()).get("metadata", {}).get("step", ""))
        event = cast(LLMCallEvent | None, self._past.done("llm_call", step))
        if self._overflows[step] and (event is None or not self._was_sent(messages, event)):
            self._overflows[step] -= 1
            raise ContextOverflowError("the transcript was too long", model=model)
        meter = parameters.get("meter") or free_meter()
        for attempt in self._lost.pop(step, ()):
            meter.begin()
            if attempt.estimated:
                meter.lost(attempt.reason)
            else:
                meter.failed(attempt.reason, Usage(attempt.input_tokens, attempt.output_tokens), attempt.bill)
        if event is None:
            raise NewStepError(step)
        meter.begin()
        reply, charge = recorded_reply(event, self._past.bodies), self._charge(step)
        return reply if charge is None else replace(reply, bill=charge.bill, bill_from=charge.bill_from)

    def price(self, model: str) -> Price | None:
        """The provider's price by the record; None without a recorded bill."""
        return self._prices.get(model)

    def _was_sent(self, messages: Sequence[BaseMessage], event: LLMCallEvent) -> bool:
        sent = [said_in(message_to_data(message)) for message in messages]
        return sent == [said_in(self._past.bodies[number]) for number in event.messages]


async def replay(
    store: Store,
    run: RunRecord,
    *,
    sandbox: str | None = None,
    trusted: bool = True,
    notify: Callable[[str], None] | None = None,
) -> Replayed:
    """Execute a run again with the recorded replies of its models, and compare the results with the record.

    The `sandbox` is by default the one of the run's settings; `notify` receives messages for the user. A record that
    is not `trusted` may name a baseline for code of anybody's, which then needs isolation. Raises `UsageError` if the
    run has not ended, its kind is unknown, its data have another salt, or its origin is malformed; `SandboxError` if no
    sandbox is available.
    """
    _check_can_replay(run)
    condition = condition_of(run)
    events, bodies = await asyncio.to_thread(lambda: (store.events(run.id), store.bodies(run.id)))
    first = _first_own_event(run, events)
    if notify:
        for change in _changes(run, condition):
            notify(change)
    settings = RunSettings.model_validate(run.settings)
    again = _Again(run, condition, events, bodies, first)
    opening = open_sandbox_pool(
        [run.kind],
        sandbox or settings.sandbox,
        settings.max_sandboxes,
        trusted_code=trusted and _is_ours(run.models),
        notify=notify,
    )
    async with opening as sandbox_pool:
        await again.execute(settings, sandbox_pool)
    # New bodies are read as from a store, which alters values that can't be stored exactly.
    later = Bodies([*bodies, *again.recorder.bodies.take_new()])
    now, then = _Story(again.recorder.events[first:], later), _Story(events[first:], again.past.bodies)
    judged = await rejudge(run, events, again.past.bodies, then.left)
    checked = Counter[str](event.type for event in judged.compared)
    return Replayed(
        run,
        then.counted + checked,
        Counter[str](event.type for event in then.left) - checked,
        first,
        (*_differences(then, now, to_the_end=again.is_whole), *again.differences(), *judged.differences),
        is_whole=again.is_whole,
        ran=len(again.ran),
        cells=_other_cells(events, again.ran, later),
    )


def _check_can_replay(run: RunRecord) -> None:
    if run.status not in ENDED:
        raise UsageError(f"the run '{run.id}' has not ended ({run.status}); only ended runs can be replayed")
    if run.kind not in EXPERIMENTS:
        raise UsageError(
            f"the run '{run.id}' can't be replayed: no experiment '{run.kind}' is installed here; programs "
            "made the calls of a gateway"
        )
    check_salt(run)


def _changes(run: RunRecord, condition: Condition) -> Iterator[str]:
    """Sentences on what has changed since the run was made."""
    if run.version != __version__:
        yield f"The run was made by labmates {run.version or '?'}; this is {__version__}."
    if run.made and (changed := mixtures([(run.kind, run.made, 1), (run.kind, made_of(condition), 0)])):
        yield f"What the run was made with has changed since, which differences may come from: {'; '.join(changed)}."


class _Again:
    """The second execution of a run, whose first events are those of its origin."""

    def __init__(
        self, run: RunRecord, condition: Condition, events: Sequence[Event], bodies: Sequence[Body], first: int
    ) -> None:
        self._run, self._condition, self._first = run, condition, first
        self.recorder = Recorder(None, None, events=events[:first], bodies=bodies)
        self.past = Recorder(None, None, events=events, bodies=bodies)
        self.ran: list[tuple[ToolCallEvent, ToolCallEvent]] = []  # each call of code, as recorded and as it ended now
        self._outcome = stop_of(run)
        self._unrecorded: NewStepError | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it reached the end of the run."""
        return self._unrecorded is None

    async def execute(self, settings: RunSettings, sandbox_pool: SandboxPool | None) -> None:
        """Execute the run with the recorded replies of its models, up to the first step without one."""
        hub = RecordedHub(self.past, {name: access.persona_text for name, access in settings.models.entries.items()})
        judges = make_panel([name for name in settings.judges if ":" not in name])  # judges without a model
        try:
            self._outcome = await rerun(
                self._run,
                self._condition,
                self.recorder,
                hub,
                sandbox_pool,
                Judging(judges, hub),
                ledger=_ledger_of(self._run, self._condition, self.past.events, self._first),
                past=self.past,
                repeated=lambda *both: self.ran.append(both),
            )
        except NewStepError as error:
            self._unrecorded = error if self._outcome is None else None

    def differences(self) -> Iterator[Difference]:
        """The differences of the run's end from the record, or the step at which there is none."""
        if self._unrecorded is not None:
            yield Difference(self._unrecorded.step, "llm_call", "", None, "asked; here the replay ended")
            return
        ended = self._run
        if (outcome := self._outcome) is not None:
            ended = replace(
                accounted(ended, self._condition.pool, self.recorder),
                models=self._condition.models(),
                status=outcome.status,
                invalid=invalid_of(ended, self.recorder, outcome.invalid),
                metrics=dict(outcome.metrics),
            )
        yield from differences_of_run(self._run, ended, metrics=not _has_assisted_scores(self.past.events))


def _other_cells(
    events: Sequence[Event], ran: Iterable[tuple[ToolCallEvent, ToolCallEvent]], bodies: Bodies
) -> tuple[Difference, ...]:
    """The cells that ended or printed otherwise, in the order of the record."""
    places = {event.step: place for place, event in enumerate(events) if event.type == "tool_call"}
    cells: list[Difference] = []
    for pair in sorted(ran, key=lambda pair: places[pair[0].step]):
        before, after = (fields_with_bodies(event, bodies) for event in pair)
        # Where a limit stops code, and what it has printed by then, is a matter of the machine's speed.
        names = RESULTS[:2] if before.get("status") == after.get("status") == "timeout" else RESULTS
        if name := next((name for name in names if before.get(name) != after.get(name)), None):
            cells.append(Difference(pair[0].step, "tool_call", name, *apart(before.get(name), after.get(name))))
    return tuple(cells)


def _first_own_event(run: RunRecord, events: Sequence[Event]) -> int:
    try:
        number = run.taken_over
    except ValueError:
        number = -1
    if not 0 <= number <= len(events):
        raise UsageError(
            f"the run '{run.id}' can't be replayed: which of its {len(events)} events it has from another run is not "
            f"known (origin: {run.origin})"
        )
    return number


class RecordedLedger(Ledger):
    """The ledger of a replayed run: recorded calls are paid as in the record.

    The affordable part of concurrent calls depends on the order of their settlement, which a replay doesn't repeat.
    `pooled` tells that calls draw on a pool of credits, so that this ledger holds the dollars behind it.
    """

    def __init__(self, total: int, charges: Iterable[ChargeEvent], *, pooled: bool) -> None:
        super().__init__(total)
        self._unpaid: defaultdict[str, deque[int]] = defaultdict(deque)
        for charge in charges:
            self._unpaid[charged_call(charge)].append(charge.excess if pooled else charge.uncovered)

    def reserve(self, amount: int, *, call: str, member: str, share: Share | None = None) -> Reservation:
        """Hold nothing for a recorded call, and `amount` for any other."""
        return super().reserve(0 if self._unpaid[call] else amount, call=call, member=member, share=share)

    def settle(self, reservation: Reservation, cost: int, usage: Usage = NO_USAGE, note: str = "") -> JournalLine:
        """Charge a call with the recorded payment."""
        unpaid = self._unpaid[reservation.call]
        uncovered = min(unpaid.popleft(), cost) if unpaid else 0
        line = super().settle(reservation, cost - uncovered, usage, note)
        return replace(line, uncovered=line.uncovered + uncovered)


def _ledger_of(run: RunRecord, condition: Condition, events: Sequence[Event], first: int) -> Ledger:
    """The ledger of a replay, after paying the first events."""
    recorded = (event for event in events[first:] if isinstance(event, ChargeEvent))
    ledger = RecordedLedger(run.most or UNLIMITED, recorded, pooled=condition.pool is not None)
    ledger.restore(charges(events[:first]), call="earlier", member="")
    return ledger


def _is_ours(models: Iterable[str]) -> bool:
    """Whether all models are the project's baselines; False if one no longer exists."""
    try:
        return all(map(is_own_baseline, models))
    except UsageError:
        return False


_Key = tuple[str, str, str, int]


class _Story:
    """The comparable events of a run, by step and type; the order of concurrent members is irrelevant."""

    def __init__(self, events: Iterable[Event], bodies: Bodies) -> None:
        self.events: dict[_Key, Event] = {}
        self.left: list[Event] = []
        self._bodies = bodies
        often = Counter[tuple[str, str, str]]()
        for event in events:
            warning = event.text if isinstance(event, WarningEvent) else ""
            same = (event.step, event.type, warning)
            # A resumed run may repeat a warning about a too long transcript.
            if event.type in (*_OF_JUDGES, "error") or (warning and often[same]):
                self.left.append(event)
                continue
            often[same] += 1
            self.events[*same, often[same]] = event

    @property
    def counted(self) -> Counter[str]:
        """The number of events by type."""
        return Counter(event.type for event in self.events.values())

    def data(self, key: _Key) -> dict[str, Any]:
        """The fields of an event with their bodies, without times."""
        event = self.events[key]
        data = fields_with_bodies(event, self._bodies)
        if event.type == "llm_call":
            data = {**data, "messages": [said_in(message) for message in data["messages"]]}
        if isinstance(event, ChargeEvent):
            # The affordable part depends on the bound, which may have been raised.
            data = {**data, "amount": event.amount + event.uncovered, "uncovered": 0, "excess": 0}
            if event.uncertain:
                data.pop("bill", None)  # Earlier versions left it out.
        if isinstance(event, ArtifactEvent) and isinstance(data["content"], dict):
            data = {**data, "content": _untimed(data["content"])}
        return _untimed(data)


def _untimed(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in _TIMES}


def _has_assisted_scores(events: Iterable[Event]) -> bool:
    """Whether the first score of a judge and metric is of one that a model assisted, named after a plus sign."""
    first: dict[tuple[str, str], str] = {}
    for event in events:
        if isinstance(event, ScoreEvent):
            first.setdefault((event.judge, event.metric), event.version)
    return any("+" in version for version in first.values())


def _differences(then: _Story, now: _Story, *, to_the_end: bool) -> Iterable[Difference]:
    for key in then.events:
        step, kind, which, _ = key
        if key not in now.events:
            if to_the_end:
                yield Difference(step or which, kind, "", "an event", None)
            continue
        yield from first_difference(step or which, kind, then.data(key), now.data(key))
    for key in now.events:
        if key not in then.events:
            yield Difference(key[0] or key[2], key[1], "", None, "an event")
