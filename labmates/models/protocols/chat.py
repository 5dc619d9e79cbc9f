"""OpenAI's chat completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from uuid import uuid4

from labmates.models.protocols.base import Json, Protocol, event, function_call, list_of, openai_usage, report
from labmates.models.reply import Reply


class Chat(Protocol):
    """The protocol of ``/v1/chat/completions``."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or in the last event of a stream."""
        return openai_usage(part.get("usage"), "prompt_tokens", "completion_tokens")

    def messages(self, body: Json) -> Iterator[Json]:
        """The transcript."""
        yield from list_of(body, "messages")

    def tool(self, tool: Json) -> Json:
        """The tool as it is."""
        return tool

    def response_format(self, body: Json) -> Json | None:
        """The format as it is."""
        return body.get("response_format")

    def said(self, parts: Sequence[Json]) -> Json:
        """The message of the first choice."""
        message: Json = {"role": "assistant", "content": "", "tool_calls": []}
        for part in parts:
            for choice in part["choices"]:
                if choice.get("index", 0) == 0:
                    _take(message, choice.get("delta") or choice.get("message") or {})
        return message

    def reply(self, reply: Reply, model: str) -> Json:
        """A completion with one choice."""
        message: Json = {"role": "assistant", "content": reply.text or None}
        if reply.tool_calls:
            calls = [function_call(call.id, call.name, json.dumps(call.arguments)) for call in reply.tool_calls]
            message["tool_calls"] = calls
        finish = "stop" if reply.finish == "unknown" else reply.finish
        return {
            "id": f"chatcmpl-{uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": report(reply.usage, "prompt_tokens", "completion_tokens"),
        }

    def events(self, reply: Json, body: Json) -> Iterator[bytes]:
        """A chunk with the whole message, one with its end, and one with the usage if that is asked for."""
        head = {**reply, "object": "chat.completion.chunk"}
        usage = head.pop("usage")
        [choice] = head.pop("choices")
        delta = dict(choice["message"])
        if calls := delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
        yield event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
        if not self.hides_usage(body):
            yield event({**head, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"


def _take(message: Json, delta: Json) -> None:
    """Add a piece of a message to it."""
    message["content"] += delta.get("content") or ""
    calls = message["tool_calls"]
    for call in delta.get("tool_calls") or ():
        if call.get("index", len(calls)) >= len(calls):
            calls.append({"id": call["id"], "function": {"name": call["function"]["name"], "arguments": ""}})
        calls[-1]["function"]["arguments"] += call["function"].get("arguments") or ""


CHAT = Chat("chat", "/v1/chat/completions", "openai", ("max_completion_tokens", "max_tokens"))
