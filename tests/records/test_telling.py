"""Every event is told in one line, and every artifact has a text."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from labmates.records.event_text import findings_text, heading
from labmates.records.events import Event, EventBase

VALUES: dict[str, Any] = {
    "status": "started", "number": 1, "model": "m", "messages": [1], "reply": 1, "finish": "stop", "input_tokens": 10,
    "output_tokens": 5, "seed": 1, "reason": "because", "tool": "run_code", "arguments": 1, "result": 1, "ok": True,
    "amount": 20, "stage": "decide", "decision": {"effort": 3}, "payoffs": {"A1": 1.5}, "to": "eval", "text": 1,
    "kind": "redo", "request": "more", "name": "notes", "version": 2, "content": 1, "judge": "verified",
    "metric": "accuracy", "value": None, "labels": None, "findings": 1, "what": "plan", "approved": False,
    "versions": {"Python": "3.13.5", "numpy": "2.5.5"},
}  # fmt: skip
TOLD = {
    "phase": "phase 2 (planned) started",
    "llm_call": "reply (10 + 5 tokens)",
    "failed_reply": "this reply could not be used: because",
    "tool_call": "run_code (ok)",
    "charge": "charged for 10 + 5 tokens",
    "decision": "decide: effort 3",
    "payoff": "payoffs, whole game: A1 1.5",
    "message": "to the eval team",
    "request": "asks the eval team (redo)",
    "approval": "plan refused: because",
    "artifact": "wrote notes, version 2",
    "findings": "states findings, version 2",
    "judge_call": "judge verified asked m (10 + 5 tokens)",
    "score": "verified 2 scores accuracy: unscored",
    "label": "verified: unlabelled",
    "environment": "sandbox with Python 3.13.5, numpy 2.5.5",
    "warning": "warning: slow",
    "error": "error: slow",
}


KINDS: dict[str, type[EventBase]] = {
    name: kind for kind in get_args(get_args(Event)[0]) for name in get_args(kind.model_fields["type"].annotation)
}


@pytest.mark.parametrize("name", KINDS)
def test_each_type_of_event_is_told(name: str) -> None:
    kind = KINDS[name]
    values = {name: VALUES[name] for name in kind.model_fields if name in VALUES}
    if name in ("warning", "error"):
        values["text"] = "slow"
    if name in ("score", "llm_call", "judge_call", "label"):
        values["version"] = "2"
    if name == "phase":
        values["reason"] = "planned"
    if name == "tool_call":
        values["status"] = "ok"
    event: Any = kind.model_validate({**values, "type": name, "team": "data"})
    assert heading(event) == TOLD[name]


def test_stated_findings_are_told_field_by_field() -> None:
    stated = {"n": 6, "names": ["a", "b"], "links": [{"from": "a", "to": "b"}, {"from": "b"}], "none": []}
    assert findings_text(stated) == "n: 6\nnames:\n  a, b\nlinks:\n  from a, to b\n  from b\nnone: none"
    assert findings_text({}) == "nothing was found"
