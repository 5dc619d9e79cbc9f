"""Parts of a record that several formats of other programs have."""

from __future__ import annotations

from typing import Any, Final

from labmates.records.bodies import Bodies
from labmates.records.events import ChargeEvent, Event, LLMCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store

MICRO: Final = 1_000_000
"""Micro-dollars of a dollar."""


class Recorded:
    """A run with its events and texts.

    Attributes
    ----------
    costs
        Micro-dollars by step: the provider's charge for a call, or the credits where it is unknown.
    """

    def __init__(self, store: Store, run: RunRecord) -> None:
        self.run = run
        self.events: list[Event] = store.events(run.id)
        self.bodies = Bodies(store.bodies(run.id))
        charges = [event for event in self.events if isinstance(event, ChargeEvent)]
        self.costs = {event.step: event.amount if event.bill is None else event.bill for event in charges}

    @property
    def calls(self) -> list[LLMCallEvent]:
        """The calls of agents, without judges', in order."""
        return [event for event in self.events if isinstance(event, LLMCallEvent) and event.by == "agent"]

    def messages(self, call: LLMCallEvent) -> list[dict[str, Any]]:
        """The messages of a call's prompt."""
        return [self.bodies[number] for number in call.messages]

    def reasoning(self, call: LLMCallEvent) -> str | None:
        """The reasoning of a call's reply; None without any."""
        return None if call.reasoning is None else str(self.bodies[call.reasoning])


def arguments_of(value: Any) -> dict[str, Any]:
    """The recorded arguments of a tool call as an object."""
    return value if isinstance(value, dict) else {"text": value}
