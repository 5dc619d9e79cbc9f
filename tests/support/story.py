"""What a run did, for tests that compare runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, ChargeEvent, FindingsEvent, LLMCallEvent, ToolCallEvent
from labmates.records.store import Store


def story(store: Store, run_id: str) -> dict[str, Any]:
    """Return what a run did, without times and without the order in which parallel members came first."""
    bodies = Bodies(store.bodies(run_id))
    events = store.events(run_id)
    return {
        "calls": {
            e.step: (bodies[e.reply], [bodies[n] for n in e.messages]) for e in events if isinstance(e, LLMCallEvent)
        },
        "charges": {e.step: e.amount for e in events if isinstance(e, ChargeEvent)},
        "tools": {e.step: bodies.text(e.result) for e in events if isinstance(e, ToolCallEvent)},
        "artifacts": [(e.step, bodies.text(e.content)) for e in events if isinstance(e, ArtifactEvent)],
        "findings": [(e.step, bodies[e.findings]) for e in events if isinstance(e, FindingsEvent)],
        "types": Counter(e.type for e in events),
        "scores": [(s.judge, s.metric, s.value, s.reason) for s in store.scores(run_id)],
    }
