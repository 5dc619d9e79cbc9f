"""A gateway's exchanges as a run of a store: model calls and charges by seat."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from labmates._version import __version__
from labmates.budgets.money import Dollars, format_dollars, show_dollars
from labmates.budgets.tokens import Usage, text_of
from labmates.errors import UsageError
from labmates.records.claims import Claims
from labmates.records.events import ChargeEvent, LLMCallEvent, WarningEvent
from labmates.records.recorder import Recorder
from labmates.records.run import RunRecord, new_run_id
from labmates.records.steps import Writer
from labmates.records.store import Store
from labmates.studies.runs import accounted
from labmates.util.loops import running, to_its_end
from labmates.util.process_ids import this_worker
from labmates.workflows.calls.call import charge_event
from labmates.workflows.people.live import live_run
from labmates.workflows.protocol.experiment import Condition
from labmates_doors.gateway.exchanges import Exchange
from labmates_doors.protocols.base import Json, RefusedRequestError

_log = logging.getLogger(__name__)
_MOST_CHARS = 500


class GatewayCondition(Condition):
    """The options of a gateway. Amounts are given and recorded in dollars."""

    kind: ClassVar[str] = "gateway"

    budget: Dollars = Field(description="The pool, in dollars.")
    seats: dict[str, Dollars | None] = Field(description="Limit of each seat, in dollars; none for the whole pool.")
    upstreams: list[str] = Field(description="Models available to the seats, as they were given.")
    allow_fields: list[str] = Field([], description="Fields that pass although their cost is unknown.")
    prices: str = Field("bill", description="Price of calls.")
    max_output_tokens: int = Field(description="Reply limit of requests without one.")

    @field_validator("budget")
    @classmethod
    def _some(cls, budget: int) -> int:
        if not budget:
            raise ValueError("a pool of $0 can't pay for a call (try 0.50)")
        return budget

    @field_validator("seats")
    @classmethod
    def _within(cls, seats: dict[str, int | None], info: ValidationInfo) -> dict[str, int | None]:
        pool = info.data.get("budget")  # None if it is invalid
        for name, most in seats.items():
            if most == 0:
                raise ValueError(f"a limit of $0 lets {name} make no call (try {name}=0.50)")
            if pool is not None and most is not None and most > pool:
                limit, whole = format_dollars(most), format_dollars(pool)
                raise ValueError(
                    f"the limit of {name}, ${limit}, exceeds the pool of ${whole}; give at most {whole}, or no limit"
                )
        return seats

    @property
    def pool(self) -> int:
        """The pool, in micro-dollars."""
        return self.budget

    def models(self) -> list[str]:
        """The models available to the seats."""
        return [upstream.partition("?")[0] for upstream in self.upstreams]


def stopped_run(store: Store, run_id: str) -> RunRecord:
    """The run of a gateway. Raises `UsageError` if it has another kind."""
    stopped = store.run(run_id)
    if stopped.kind != GatewayCondition.kind:
        raise UsageError(f"--resume: run {stopped.id} has the kind '{stopped.kind}', not '{GatewayCondition.kind}'")
    return stopped


class RunOfGateway:
    """A record of exchanges as a run of a store.

    Parameters
    ----------
    resume
        The run to resume; a new one by default.
    tell
        Receives the error after which nothing more can be recorded.

    Attributes
    ----------
    fault
        Error that prevents recording, so that no call may start; empty otherwise.

    Raises
    ------
    UsageError
        If `resume` is not a gateway's run, has ended, or is held by another process.
    """

    def __init__(
        self,
        store: Store,
        condition: GatewayCondition,
        resume: str | None = None,
        tell: Callable[[str], None] = _log.error,
    ) -> None:
        self.fault = ""
        self._condition, self._tell = condition, tell
        self._unwritten: list[int] = []  # the charges of exchanges since the last write
        self._claims = Claims(store, this_worker())
        self._store = store
        self.run = self._claimed(store, resume)
        events, bodies = (store.events(self.run.id), store.bodies(self.run.id)) if resume else ([], [])
        self._past = (events, bodies)
        self.spent = Counter[str]()
        for event in events:
            if isinstance(event, ChargeEvent):
                self.spent[event.team] += event.amount
        self._new = asyncio.Event()

    def _claimed(self, store: Store, resume: str | None) -> RunRecord:
        if resume is not None:
            return self._claims.take(stopped_run(store, resume).id)
        condition = self._condition
        values = condition.model_dump(mode="json")
        new = RunRecord(new_run_id(), condition.kind, condition.key, 0, 0, values, condition.models())
        return self._claims.new(replace(new, version=__version__))

    @asynccontextmanager
    async def opened(self, budget: Callable[[], Json], is_empty: Callable[[], bool]) -> AsyncIterator[None]:
        """Write exchanges while the gateway is served, then end the run; its page shows the state of the `budget`."""
        began, writer = time.monotonic(), Writer(self._store)
        (events, bodies), self._past = self._past, ([], [])
        self._recorder = Recorder(writer, self.run, events=events, bodies=bodies)
        self._recorder.forget()
        try:
            async with running(self._write()), running(self._renew()), live_run(self.run.id, budget):
                yield
        finally:
            ended = replace(
                accounted(self.run, self._condition.pool, self._recorder),
                status="exhausted" if is_empty() else "interrupted",
                seconds=round(self.run.seconds + time.monotonic() - began, 3),
            )
            if not self.fault:
                await to_its_end(self._recorder.finish(ended))
            await writer.close()

    def add(self, exchange: Exchange) -> None:
        """Record an exchange."""
        self._unwritten.append(exchange.cost)
        if exchange.usage is None:
            reply = "" if exchange.note in str(exchange.reply) else f": {exchange.reply}"
            text = f"{exchange.protocol.path} {exchange.model}: {exchange.status} {exchange.note}{reply}"
            self._recorder.emit(WarningEvent(at=exchange.at, team=exchange.seat, text=text[:_MOST_CHARS]))
        else:
            self._add_charged(exchange, exchange.usage)
        self._new.set()

    def _add_charged(self, exchange: Exchange, usage: Usage) -> None:
        keep, request = self._recorder.bodies.keep, exchange.request
        where: Any = {"at": exchange.at, "step": f"{self._recorder.length}", "team": exchange.seat}
        reply = _reply(exchange)
        self._recorder.emit(
            LLMCallEvent(
                **where,
                model=exchange.model,
                messages=[keep(message) for message in _messages(exchange)],
                reply=keep(reply),
                settings=keep({name: request[name] for name in request.keys() - {"messages", "input", "system"}}),
                finish="unknown" if exchange.is_lost else "tool_calls" if reply.get("tool_calls") else "stop",
                output_limit=exchange.limit,
                **vars(usage),
                seconds=exchange.seconds,
                seed=0,
                notes=[exchange.note] if exchange.note else [],
            ),
            charge_event(
                where,
                usage,
                exchange.price,
                amount=exchange.cost,
                uncovered=exchange.uncovered,
                uncertain=exchange.is_lost,
                reason=exchange.note if exchange.is_lost else "",
                **self._bill(exchange),
            ),
        )

    def _bill(self, exchange: Exchange) -> Mapping[str, Any]:
        """The fields of the provider's bill: as it reported it, else by a price list that is its own."""
        if exchange.bill is not None:
            return {"bill": exchange.bill, "bill_from": "server"}
        return {"bill": exchange.cost, "bill_from": "table"} if self._condition.prices == "bill" else {}

    async def _write(self) -> None:
        """Write new exchanges, in batches."""
        while True:
            await self._new.wait()
            self._new.clear()
            number = len(self._unwritten)
            try:
                await self._recorder.flush()
                self._recorder.forget()
                del self._unwritten[:number]
            except Exception as error:  # after any error, further exchanges would be lost
                self._stop(str(error))

    async def _renew(self) -> None:
        """Keep the run claimed."""
        async for _ in self._claims.renewed(lambda: [self.run]):
            self._stop("another process took over the run")

    def _stop(self, reason: str) -> None:
        if not self.fault:
            self.fault = f"exchanges can no longer be recorded: {reason}"
            self._tell(f"Calls are refused: {self.fault}")

    @property
    def lacks(self) -> str:
        """What the record lacks after a fault; empty if nothing."""
        number, cost = len(self._unwritten), show_dollars(sum(self._unwritten))
        return f"Not in the record, so not counted by --resume: {number} exchanges of {cost}." if self.fault else ""


def _messages(exchange: Exchange) -> list[Json]:
    """The transcript of a request in the form of records; one raw message if it can't be parsed."""
    try:
        return [_kept(message) for message in exchange.protocol.messages(exchange.request)]
    except (ValueError, TypeError, KeyError, AttributeError, RefusedRequestError):
        return [{"role": "user", "content": json.dumps(exchange.request, ensure_ascii=False)}]


def _reply(exchange: Exchange) -> Json:
    """A model's reply in the form of records; unchanged if it can't be parsed."""
    reply = exchange.reply
    try:
        parts = [reply] if isinstance(reply, dict) else _parts(reply)
        return _kept(exchange.protocol.said(parts))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return {"role": "assistant", "content": "" if reply is None else str(reply)}


def _parts(stream: str) -> list[Json]:
    """The data of a stream's events."""
    lines = (line[5:].strip() for line in stream.split("\n") if line.startswith("data:"))
    return [part for line in lines if line != "[DONE]" and isinstance(part := json.loads(line), dict)]


def _kept(message: Json) -> Json:
    """A message of chat completions in the form of records."""
    role = {"developer": "system", "function": "tool"}.get(message["role"], message["role"])
    kept: Json = {"role": role, "content": text_of(message.get("content"))}
    if calls := message.get("tool_calls"):
        kept["tool_calls"] = [
            {"id": call["id"], "name": call["function"]["name"], "args": _arguments(call["function"]["arguments"])}
            for call in calls
        ]
    if role == "tool":
        kept["tool_call_id"] = message.get("tool_call_id", "")
    return kept


def _arguments(text: str) -> Json:
    """The arguments of a call; invalid ones are kept as text under an empty name."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"": text}
