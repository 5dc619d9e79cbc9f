"""People who answer in place of a model, on the page of their run: ``--model human:NAME``, or a seat of the lab.

A person is shown what a model would be sent, and answers with a text, with the fields of a decision, or with a call of
a tool. The reply costs nothing, and is recorded, replayed and resumed like that of a model.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from labmates.agents.transcript import message_to_data
from labmates.errors import UsageError
from labmates.models.names import HUMAN, RECORDED, is_outside, parse_model
from labmates.models.reply import Reply, ToolCall
from labmates.records.recorder import Recorder
from labmates.workflows.calls.call import Call, Outsider, outside_reply
from labmates.workflows.calls.caller import Caller
from labmates.workflows.calls.recorded import RecordedOutsider, from_run
from labmates.workflows.people.live import Live

SECONDS: Final = 3600.0
"""Time limit of one reply of a person that has no other."""
DECISION: Final = "decision"
"""The name of the form for a decision, beside those of tools."""
MOST_BYTES: Final = 800_000
"""Of what a person is shown; older messages are left out beyond that."""

Json = dict[str, Any]
_JSON: Final = TypeAdapter[Any](Any)
_KINDS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "whole": TypeAdapter(int),
    "number": TypeAdapter(int | FiniteFloat),
}


@dataclass
class Person:
    """A person at the page of a run.

    Parameters
    ----------
    live
        The link to the page.
    seconds
        Time limit of one reply.
    """

    live: Live
    seconds: float

    async def reply(self, call: Call) -> Reply:
        """The person's reply to what the page shows; an empty one, with the reason, when the time is over."""
        turn = turn_of(call, time.time() + self.seconds)
        try:
            async with asyncio.timeout(self.seconds):
                given = await self.live.turn(turn, lambda form: reply_of(turn, form))
        except TimeoutError:
            return outside_reply(notes=(f"{call.speaker.agent} gave no reply within {self.seconds:g} s",))
        calls = (
            [ToolCall(f"{call.step}/0", given["call"]["name"], given["call"]["arguments"])] if "call" in given else ()
        )
        return outside_reply(given.get("text", ""), calls)


def people_of(models: Iterable[str]) -> list[str]:
    """Those of the models of a run that are people."""
    return sorted(model for model in models if model.startswith(f"{HUMAN}:"))


def outsider_of(
    model: str,
    caller: Caller,
    past: Recorder | None,
    live: Live | None,
    record_of: Callable[[str], Recorder] | None,
    seconds: float | None = None,
) -> Outsider | None:
    """Who answers in place of a model: a person at the page of a run, another run, or its record in a rerun.

    A person has so many `seconds`, by default those in its name. Raises `UsageError` if there is no page to ask it on.
    """
    if not is_outside(model):
        return None
    if past is not None:
        return RecordedOutsider(caller, past)
    if model.startswith(f"{RECORDED}:"):
        return from_run(caller, model, record_of)
    if live is None:
        raise UsageError(f"model '{model}': a person can't be asked here")
    return Person(live, seconds or seconds_of(model))


def seconds_of(model: str) -> float:
    """The time limit of one reply of a person, by its name."""
    return parse_model(model).settings.seconds or SECONDS


def turn_of(call: Call, until: float) -> Json:
    """The view of a call on a page: its messages, and a form for each way to answer."""
    forms = [tool["function"] for tool in call.offered]
    if call.response_format is not None:
        schema = call.response_format["json_schema"]["schema"]
        forms = [{"name": DECISION, "description": "Your decision.", "parameters": schema}]
    messages = [message_to_data(message) for message in call.messages]
    while len(messages) > 2 and len(json.dumps(messages)) > MOST_BYTES:
        del messages[1]
    return {
        "step": call.step,
        "team": call.speaker.team,
        "agent": call.speaker.agent,
        "model": call.speaker.model,
        "until": until,
        "messages": messages,
        "forms": [{**form, "fields": fields_of(form.get("parameters", {}))} for form in forms],
    }


def fields_of(schema: Mapping[str, Any]) -> list[Json]:
    """The fields of a form for an object of a JSON schema.

    Each has ``name``, ``kind`` (``number``, ``whole``, ``choice``, ``text``, or ``json`` for what has parts),
    ``required``, ``about``, and for a choice its ``options``.
    """
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "kind": _kind(part := _resolved(value, schema)),
            "required": name in required,
            "about": part.get("description", ""),
            "options": _options(part),
        }
        for name, value in schema.get("properties", {}).items()
    ]


def reply_of(turn: Mapping[str, Any], given: Mapping[str, Any]) -> Json:
    """The reply in a submitted form: ``text``, or the ``call`` of a tool.

    Raises `UsageError` if a field is missing or is not what it has to be; the text is for the person.

    Parameters
    ----------
    given
        ``form``, the name of the form or empty for plain text; ``text``; and ``fields`` by name, as they were typed.
    """
    name = given.get("form", "")
    if not name:
        if not str(given.get("text", "")).strip():
            raise UsageError("the answer is empty; write something")
        return {"text": str(given["text"]).strip()}
    form = next((form for form in turn["forms"] if form["name"] == name), None)
    if form is None:
        raise UsageError(f"there is no form '{name}'")
    typed = given.get("fields") or {}
    values = {field["name"]: _value(field, str(typed.get(field["name"], ""))) for field in form["fields"]}
    values = {key: value for key, value in values.items() if value is not None}
    return {"text": json.dumps(values)} if name == DECISION else {"call": {"name": name, "arguments": values}}


def _value(field: Mapping[str, Any], typed: str) -> Any:
    """The value of a field; None for an empty one that may be."""
    name, kind, text = field["name"], field["kind"], typed.replace("\r\n", "\n")
    if not text.strip():
        if field["required"]:
            raise UsageError(f"{name}: this field is required")
        return None
    if kind == "text":
        return text
    try:
        value = _KINDS.get(kind, _JSON).validate_json(text, strict=True)
    except ValidationError:
        what = {"whole": "a whole number", "number": "a number", "choice": "one of the options"}.get(kind, "JSON")
        raise UsageError(f"{name}: '{text[:60]}' is not {what}") from None
    if kind == "choice" and value not in field["options"]:
        raise UsageError(f"{name}: '{text[:60]}' is not one of the options")
    return value


def _resolved(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a schema, where it only names a definition."""
    definition: Mapping[str, Any] = schema.get("$defs", {}).get(str(value.get("$ref", "")).rpartition("/")[2], value)
    return definition


def _kind(part: Mapping[str, Any]) -> str:
    if _options(part):
        return "choice"
    return {"integer": "whole", "number": "number", "string": "text"}.get(str(part.get("type")), "json")


def _options(part: Mapping[str, Any]) -> list[Any]:
    if "const" in part:
        return [part["const"]]
    if part.get("type") == "boolean":
        return [True, False]
    return list(part.get("enum", ()))
