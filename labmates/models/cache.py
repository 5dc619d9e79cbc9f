"""A cache of model calls: an identical request gets the earlier reply.

Requests are identical if they agree in model, address, messages, tools, tool choice, seed, output limit, temperature
and response format. Only complete, faultless replies are stored. Scripted models are not cached: they are free, and
their replies may change between versions of labmates.

The cache holds no keys and no other connection data; requests are stored as hashes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from labmates.budgets.tokens import ATTACHED, Usage
from labmates.models.attached import attached_to
from labmates.models.normalise import resendable
from labmates.models.reply import Reply, ToolCall
from labmates.models.sending import Request


class CallCache(Protocol):
    """A store of replies, as JSON data by key."""

    async def get(self, key: str) -> dict[str, Any] | None:
        """The stored reply, or None."""

    async def put(self, key: str, reply: dict[str, Any]) -> None:
        """Store a reply; an existing one stays."""


def call_key(model: str, address: str, request: Request) -> str:
    """The key of a request: a hash of its canonical JSON, 64 hexadecimal digits."""
    data = {
        "model": model,
        "address": address,
        "messages": [_message(message) for message in request.messages],
        "tools": request.tools,
        "seed": request.seed,
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
    }
    if request.response_format is not None:
        data["response_format"] = request.response_format
    if request.tool_choice:
        data["tool_choice"] = request.tool_choice
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def reply_to_data(reply: Reply) -> dict[str, Any]:
    """A reply as JSON data, without attempts and times."""
    return {
        "text": reply.text,
        "tool_calls": [[call.id, call.name, call.arguments] for call in reply.tool_calls],
        "finish": reply.finish,
        "usage": asdict(reply.usage),
        "reasoning": reply.reasoning,
        **({"raw": reply.raw} if reply.raw else {}),
        **({ATTACHED: attached} if (attached := attached_to(reply.message)) else {}),
    }


def reply_from_data(data: dict[str, Any], seconds: float) -> Reply:
    """The reply stored as `data`, without an attempt; `seconds` is the time of the lookup."""
    calls = tuple(ToolCall(*call) for call in data["tool_calls"])
    return Reply(
        text=data["text"],
        tool_calls=calls,
        faults=(),
        message=resendable(data["text"], calls, data.get(ATTACHED)),
        finish=cast(Any, data["finish"]),
        usage=Usage(**data["usage"]) if isinstance(data["usage"], dict) else Usage(*data["usage"]),
        reasoning=data["reasoning"],
        raw=data.get("raw", ""),
        attempts=0,
        seconds=seconds,
        cached=True,
    )


def _message(message: BaseMessage) -> dict[str, Any]:
    data: dict[str, Any] = {"type": message.type, "content": message.content}
    if isinstance(message, AIMessage):
        data["tool_calls"] = [[call["id"], call["name"], call["args"]] for call in message.tool_calls]
    if attached := attached_to(message):
        data[ATTACHED] = attached
    if isinstance(message, ToolMessage):
        data["tool_call_id"] = message.tool_call_id
    return data
