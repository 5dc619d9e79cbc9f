"""The events of a run as a list: one a line, with the numbers by which a run is forked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.cli.console import clean, out, print_json
from labmates.records.event_text import heading

if TYPE_CHECKING:
    from labmates.records.bodies import Bodies
    from labmates.records.events import Event
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

MOST_CHARS = 60


def list_events(store: Store, run: RunRecord, *, as_json: bool) -> None:
    """Print the events of a run: number, seconds since its first one, team, agent, type, step, and a few words."""
    from labmates.records.bodies import Bodies

    events = store.events(run.id)
    bodies = Bodies(store.bodies(run.id))
    start = events[0].at if events else 0.0
    for number, event in enumerate(events):
        seconds, words = event.at - start, _words(event, bodies)
        if as_json:
            where = {"team": event.team, "agent": event.agent, "type": event.type, "step": event.step}
            print_json({"number": number, "seconds": round(seconds, 3), **where, "text": words})
        else:
            where_ = "/".join(filter(None, (event.team, event.agent)))
            line = f"{number:>5} {seconds:>9.2f} s  {where_:<24} {event.type:<12} {event.step:<36} {words}"
            out().print(clean(line).rstrip(), markup=False, soft_wrap=True)


def _words(event: Event, bodies: Bodies) -> str:
    from labmates.budgets.money import show_dollars

    text = ""
    match event.type:
        case "phase":
            text = f"phase {event.number + 1} ({event.reason}) {event.status}"
        case "llm_call":
            calls = [call["name"] for call in bodies[event.reply].get("tool_calls", ())]
            content = f"calls {', '.join(calls)}" if calls else bodies[event.reply]["content"]
            text = f"{event.input_tokens} + {event.output_tokens} tokens: {content}"
        case "tool_call":
            text = f"{event.tool} ({event.status or ('ok' if event.ok else 'error')})"
        case "charge":
            text = show_dollars(event.amount)
        case "message":
            text = f"to {event.to}: {bodies.text(event.text)}"
        case "request":
            text = f"{event.kind} to {event.to}: {event.request}"
        case "approval":
            text = heading(event)
        case "artifact":
            text = f"{event.name}, version {event.version}{' (partial)' if event.partial else ''}"
        case "findings":
            text = f"version {event.version}: {', '.join(bodies[event.findings]) or 'nothing was found'}"
        case "judge_call":
            text = f"{event.judge}, {event.input_tokens} + {event.output_tokens} tokens"
        case "score":
            text = f"{event.judge} {event.metric}: {'unscored' if event.value is None else f'{event.value:.3f}'}"
        case "label":
            text = f"{event.judge}: {event.reason if event.labels is None else ', '.join(event.labels)}"
        case "failed_reply":
            text = event.reason
        case "warning" | "error":
            text = event.text
    line = " ".join(text.split())
    short = line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]} …"
    return f"[cached] {short}" if getattr(event, "cached", False) else short
