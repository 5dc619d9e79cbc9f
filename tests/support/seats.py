"""An organisation of one seat, whoever takes it, and the findings that it states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from labmates.agents.organisation_files import find_organisation
from labmates.records.bodies import Bodies
from labmates.records.events import FindingsEvent
from labmates.records.store import Store
from labmates.workflows.calls import caller
from labmates.workflows.calls.call import Call


def seated(**seat: Any) -> dict[str, Any]:
    """The organisation of one agent, whose seat is changed."""
    solo = find_organisation("solo").model_dump()
    team = solo["teams"]["solo"]
    seats = {"researcher": {**team["seats"]["researcher"], **seat}}
    return {**solo, "name": "seated", "teams": {"solo": {**team, "seats": seats, "memory": "step"}}}


def findings(store: Store, run_id: str) -> list[Any]:
    bodies = Bodies(store.bodies(run_id))
    return [bodies[event.findings] for event in store.events(run_id) if isinstance(event, FindingsEvent)]


@contextmanager
def listing_usable_tools() -> Iterator[None]:
    """Members in this process are listed only usable tools, as agents from outside are: their prompts cost the same."""

    def call(*args: Any, **options: Any) -> Call:
        asked = Call(*args, **options)
        return replace(asked, tools=asked.offered)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caller, "Call", call)
        yield
