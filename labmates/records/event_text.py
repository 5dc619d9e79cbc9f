"""Events as one line of text, for terminal and browser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labmates.records.bodies import Value
from labmates.records.events import ApprovalEvent, DecisionEvent, Event, PayoffEvent


def heading(event: Event) -> str:
    """The headline of an event, without its agent and its bodies."""
    match event.type:
        case "phase":
            return f"phase {event.number + 1} ({event.reason}) {event.status}"
        case "llm_call":
            if event.is_outside:
                return ", ".join([f"reply of {event.model}", *event.faults])
            return f"reply ({_tokens(event.input_tokens, event.output_tokens, event.faults)})"
        case "judge_call":
            tokens = _tokens(event.input_tokens, event.output_tokens, event.faults)
            return f"judge {event.judge} asked {event.model} ({tokens})"
        case "tool_call":
            went = "ok" if event.ok else "error"
            return f"{event.tool} ({went if event.status in ('', went) else f'{went}, {event.status}'})"
        case "decision":
            return _decision(event)
        case "payoff":
            return _payoff(event)
        case "message":
            return f"to {event.to if event.to == event.team else f'the {event.to} team'}"
        case "request":
            return f"asks the {event.to} team ({event.kind})"
        case "approval":
            return f"{event.what} {_approval(event)}{' (automatically)' if event.automatic else ''}"
        case "artifact":
            return f"wrote {event.name}, version {event.version}{' (partial)' if event.partial else ''}"
        case "findings":
            return f"states findings, version {event.version}"
        case "score":
            value = "unscored" if event.value is None else f"{event.value:.3f}"
            return f"{event.judge} {event.version} scores {event.metric}: {value}"
        case "label":
            return f"{event.judge}: {'unlabelled' if event.labels is None else ', '.join(event.labels)}"
        case "failed_reply":
            return f"this reply could not be used: {event.reason}"
        case "charge":
            return f"charged for {event.input_tokens} + {event.output_tokens} tokens"
        case "environment":
            return f"sandbox with {versions_text(event.versions)}"
        case "warning" | "error":
            return f"{event.type}: {event.text}"


def versions_text(versions: Mapping[str, str]) -> str:
    """Programs with their versions, in one line."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def artifact_text(body: Value) -> str:
    """An artifact as text; a strategy written as code has named parts."""
    if isinstance(body, dict):
        return "\n".join(f"{name}: {value}" for name, value in body.items())
    return body if isinstance(body, str) else repr(body)


def findings_text(body: Value) -> str:
    """Findings as text, one field per line; the entries of a list follow below its field."""
    if not isinstance(body, dict) or not body:
        return "nothing was found"
    return "\n".join(_field(name, value) for name, value in body.items())


def _field(name: str, value: object) -> str:
    if isinstance(value, list):
        lines = (
            [", ".join(map(str, value))] if not any(isinstance(entry, dict) for entry in value) else map(_entry, value)
        )
        return "".join([f"{name}:", *(f"\n  {line}" for line in lines if line)]) if value else f"{name}: none"
    return f"{name}: {_entry(value)}"


def _entry(value: object) -> str:
    return ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)


def shown_values(values: dict[str, Any]) -> str:
    """Names and values in one line; floats in short form."""
    return ", ".join(f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in values.items())


def _tokens(inputs: int, outputs: int, faults: list[str]) -> str:
    return ", ".join([f"{inputs} + {outputs} tokens", *faults])


def _decision(event: DecisionEvent) -> str:
    where = [*([f"round {event.round}"] if event.round else []), *([event.match] if event.match else [])]
    how = "no reply could be used; played for it" if event.failed else event.stage
    return ": ".join([*([", ".join(where)] if where else []), how, shown_values(event.decision)])


def _approval(event: ApprovalEvent) -> str:
    if event.what == "interrupt" and not isinstance(event.answer, bool):
        return f"answered: {event.answer if isinstance(event.answer, str) else json.dumps(event.answer)}"
    return "approved" if event.approved else f"refused: {event.reason or 'no reason given'}"


def _payoff(event: PayoffEvent) -> str:
    what = f"round {event.round}" if event.round else "whole game"
    more = f"; {shown_values(event.details)}" if event.details else ""
    return f"payoffs, {f'{event.match}, ' if event.match else ''}{what}: {shown_values(event.payoffs)}{more}"
