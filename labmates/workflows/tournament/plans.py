"""The final plans of the players of a tournament, out of its record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labmates.records.bodies import Bodies
from labmates.records.events import DecisionEvent, Event, LLMCallEvent
from labmates.workflows.tournament.planning import MOST_CHARS

_STAGES = ("plan", "improved plan")


def final_plans(events: Iterable[Event], bodies: Bodies) -> Mapping[str, str]:
    """The plan that each player ended with; players who never had one are left out."""
    calls: list[tuple[tuple[int, int, int, int, int], LLMCallEvent]] = []
    failed = set()
    for event in events:
        if isinstance(event, DecisionEvent) and event.failed:
            failed.add(event.step)
        elif isinstance(event, LLMCallEvent) and (when := _when(event.step)) is not None:
            calls.append((when, event))
    plans = {}
    for _, call in sorted(calls, key=lambda call: call[0]):
        reply = bodies[call.reply]
        text = str(reply.get("content", "")).strip() if isinstance(reply, Mapping) else ""
        if text and call.step.rpartition("/")[0] not in failed:
            plans[call.agent] = text[:MOST_CHARS]
    return plans


def _when(step: str) -> tuple[int, int, int, int, int] | None:
    """The order of a call for a plan (match, round, critiques before it, stage, repair turn); None for other calls."""
    match step.split("/"):
        case [number, round_, _, stage, turn, repair] if stage in _STAGES:
            return int(number), int(round_), int(turn), _STAGES.index(stage), int(repair)
        case _:
            return None
