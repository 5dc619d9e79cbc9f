"""An organisation of one seat, whoever takes it, and the findings that it states."""

from __future__ import annotations

from typing import Any

from labmates.agents.organisation_files import find_organisation
from labmates.records.bodies import Bodies
from labmates.records.events import FindingsEvent
from labmates.records.store import Store


def seated(**seat: Any) -> dict[str, Any]:
    """The organisation of one agent, whose seat is changed."""
    solo = find_organisation("solo").model_dump()
    team = solo["teams"]["solo"]
    seats = {"researcher": {**team["seats"]["researcher"], **seat}}
    return {**solo, "name": "seated", "teams": {"solo": {**team, "seats": seats, "memory": "step"}}}


def findings(store: Store, run_id: str) -> list[Any]:
    bodies = Bodies(store.bodies(run_id))
    return [bodies[event.findings] for event in store.events(run_id) if isinstance(event, FindingsEvent)]
