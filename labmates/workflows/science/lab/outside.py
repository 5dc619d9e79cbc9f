"""External agents, people and functions on an organisation's seats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langgraph.errors import GraphInterrupt

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import Seat
from labmates.budgets.money import show_dollars
from labmates.budgets.visibility import Visibility
from labmates.errors import UsageError
from labmates.models.names import SEAT
from labmates.records.events import ChargeEvent, Event, LLMCallEvent
from labmates.registry import Registry
from labmates.tasks.registry import import_place
from labmates.workflows.calls.call import UNPAID, Call, Outsider, Speaker, outer_step
from labmates.workflows.calls.caller import Caller
from labmates.workflows.people.answerers import outsider_of
from labmates.workflows.people.live import Live
from labmates.workflows.protocol.services import Services


class OutsideAgent(Outsider, Protocol):
    """An external agent on a seat in all steps of a run."""

    async def leave(self) -> None:
        """End its current step, if any."""


class SeatKind(Protocol):
    """A way in which external agents are reached."""

    def check(self, name: str, seat: Seat) -> None:
        """Check that the agent of a seat can be started. Raises `UsageError` if something is missing."""

    def connect(self, caller: Caller, speaker: Speaker, seat: Seat, budget: Callable[[Call], str]) -> OutsideAgent:
        """The agent of a seat, which asks the speaker's model; `budget` is its view of the pool during a call."""


SEATS: Registry[SeatKind] = Registry("kind of seats", "labmates.seats")
"""Ways to reach external agents, by the key of a seat that names the agent."""


OWN_GRAPHS: Registry[Callable[[], Any]] = Registry("organisation written as", "labmates.lab_graphs")
"""Graphs that run organisations which are no teams; a run of a user's code asks for ``code``."""


class SeatAgents:
    """The external agents of one run.

    Parameters
    ----------
    seats
        The team and the seat of each name.
    model_of
        The model of a seat.
    live
        Link to the page on which people answer; None without a page.
    services
        The record of a rerun replaces the agents.
    """

    def __init__(
        self,
        seats: Mapping[str, tuple[str, Seat]],
        model_of: Callable[[str], str],
        visibility: Visibility,
        caller: Caller,
        services: Services,
        live: Live | None,
    ) -> None:
        past, record_of = services.past, services.record_of
        self._seats = seats
        self._others = partial(outsider_of, caller=caller, past=past, live=live, record_of=record_of)
        self._agents: dict[str, OutsideAgent] = {}
        caller.outsiders = self.of

        def budget(call: Call) -> str:
            return call.purse.status(visibility)

        for name, (team, seat) in seats.items():
            if seat.outside and past is None:  # else its record answers
                speaker = Speaker(team, name, model_of(name))
                self._agents[name] = SEATS.get(seat.outside).connect(caller, speaker, seat, budget)

    def of(self, model: str) -> Outsider | None:
        """The external agent, person or run with a recorded name; None for a model."""
        provider, _, name = model.partition(":")
        if provider == SEAT and self._agents:
            return self._agents[name]
        _, seat = self._seats.get(name, ("", None))
        return self._others(model, seconds=seat.seconds if seat and seat.human else None)

    @asynccontextmanager
    async def step(self, seat: str) -> AsyncIterator[None]:
        """A step of a seat; its external agent ends with the step, unless an interrupt will resume it."""
        is_interrupted = False
        try:
            yield
        except GraphInterrupt:
            is_interrupted = True
            raise
        finally:
            if seat in self._agents and not is_interrupted:
                await self._agents[seat].leave()

    async def close(self) -> None:
        """End all agents."""
        for agent in self._agents.values():
            await agent.leave()


def check_seats(organisation: Organisation) -> None:
    """Check that the external agents can be started.

    Raises `UsageError` if something is missing, such as a program, a function or the package that reaches it.
    """
    for name, (_, seat) in organisation.seats.items():
        if seat.outside:
            SEATS.get(seat.outside).check(name, seat)


def failed_seats(events: Iterable[Event]) -> str | None:
    """Why the work of the external agents is unusable: a step of one ended with a failure. None if none did."""
    last: dict[str, LLMCallEvent] = {}
    charged: dict[str, list[ChargeEvent]] = defaultdict(list)
    for event in events:
        if isinstance(event, ChargeEvent):
            charged[event.agent].append(event)
        elif isinstance(event, LLMCallEvent) and event.model.startswith(f"{SEAT}:"):
            last[event.step.rpartition("/")[0]] = event
    failed = [event for event in last.values() if event.faults and not any(UNPAID in note for note in event.notes)]
    if not failed:
        return None
    first = failed[0]
    steps = [event.agent for event in last.values()].count(first.agent)
    times = [event.agent for event in failed].count(first.agent)
    calls = [charge for charge in charged[first.agent] if outer_step(charge.step)]
    spent = show_dollars(sum(charge.amount for charge in charged[first.agent]))
    return (
        f"the agent of the seat {first.agent} failed in {times} of {steps} steps ({len(calls)} model calls, {spent}): "
        f"{'; '.join(first.notes) or 'it gave no answer'}"
    )


def load_function(place: str) -> Callable[[Any], object]:
    """The function at ``module:function`` or ``file.py:function``.

    Raises `UsageError` if it can't be imported, or is not a function.
    """
    module, _, name = place.rpartition(":")
    try:
        function = getattr(import_place(module), name)
    except (Exception, SystemExit) as error:
        raise UsageError(f"organisation: '{place}' can't be imported: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise UsageError(f"organisation: '{place}' is not a function that takes a Lab")
    return cast(Callable[[Any], object], function)


async def worked(place: str, given: object, messages: Sequence[BaseMessage]) -> object:
    """What the function at a place ends with, or the LangGraph graph that it returns, invoked with `messages`.

    Raises `RuntimeError` if its code exits, which would end all runs of the process.
    """
    try:
        made = load_function(place)(given)
        if isawaitable(made):
            made = await made
        return await made.ainvoke({"messages": [*messages]}) if isinstance(made, Runnable) else made
    except SystemExit as error:
        raise RuntimeError(f"its code called sys.exit({error.code!r})") from error
