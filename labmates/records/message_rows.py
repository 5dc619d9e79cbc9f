"""Rows of messages: each message of each model call of agents once, where it was first sent or received."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from labmates.records.bodies import Bodies
from labmates.records.events import LLMCallEvent
from labmates.records.reading import BodyReader

COLUMNS: Final = (
    "at", "step", "team", "agent", "model", "place", "role", "content", "reasoning", "tool_calls", "tool_call_id",
    "finish", "input_tokens", "output_tokens", "seconds",
)  # fmt: skip


def message_rows(bodies: BodyReader, calls: list[LLMCallEvent]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a run's calls in order, each agent's messages once, whole.

    ``place`` is a message's place in its call's transcript, from 0; a call's reply comes last, with its reasoning, the
    reason of its end, tokens and seconds. The transcript of a call is made of the newest message of each place up to
    it, unless it was shortened to the model's context.
    """
    told: dict[str, set[int]] = {}
    replied: dict[str, set[str]] = {}
    for call in calls:
        known, replies = told.setdefault(call.agent, set()), replied.setdefault(call.agent, set())
        new = [(place, number) for place, number in enumerate(call.messages) if number not in known]
        known.update(number for _, number in new)
        texts = bodies.values([*(number for _, number in new), call.reply, *filter(None, [call.reasoning])])
        where = {name: getattr(call, name) for name in ("at", "step", "team", "agent", "model")}
        for place, number in new:
            if (said := _reply(texts.get(number))) == "" or said not in replies:
                yield {**where, "place": place, **_said(texts.get(number))}
        known.add(call.reply)
        replies.add(_reply(texts.get(call.reply)))
        ended = {name: getattr(call, name) for name in ("finish", "input_tokens", "output_tokens", "seconds")}
        thought = {} if call.reasoning is None else {"reasoning": texts.get(call.reasoning)}
        yield {**where, "place": len(call.messages), **_said(texts.get(call.reply)), **thought, **ended}


def new_messages(calls: Iterable[LLMCallEvent], bodies: Bodies) -> Iterator[tuple[LLMCallEvent, list[int]]]:
    """Yield the calls of one agent, each with the messages that its transcript and last reply lacked, in order."""
    before: list[int] = []
    replies: dict[str, int] = {}
    for call in calls:
        sent = [replies.get(_reply(bodies[number]), number) for number in call.messages]
        steps = SequenceMatcher(None, before, sent, autojunk=False).get_opcodes()
        yield call, [number for how, _, _, start, end in steps if how != "equal" for number in sent[start:end]]
        replies[_reply(bodies[call.reply])] = call.reply
        before = [*sent, call.reply]


def _reply(message: Any) -> str:
    """What a reply says, which a later prompt repeats without what its provider attached; empty if it is none."""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return ""
    return json.dumps([message.get("content"), message.get("tool_calls", [])])


def _said(message: Any) -> dict[str, Any]:
    """The columns of a stored message; those of one that can't be read are empty."""
    said = dict.fromkeys(COLUMNS[COLUMNS.index("role") :])
    if not isinstance(message, dict):
        return said
    calls = message.get("tool_calls")
    return {
        **said,
        "role": message.get("role"),
        "content": message.get("content"),
        "tool_calls": json.dumps(calls, ensure_ascii=False) if calls else None,
        "tool_call_id": message.get("tool_call_id"),
    }
