"""OpenAI's chat completions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from uuid import uuid4

from labmates.models.reply import Reply
from labmates_doors.protocols.base import Json, Protocol, Writer, event, function_call, list_of, openai_usage, report


class Chat(Protocol):
    """The protocol of ``/v1/chat/completions``."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or in the last event of a stream."""
        return openai_usage(part.get("usage"), "prompt_tokens", "completion_tokens")

    def messages(self, body: Json) -> Iterator[Json]:
        """The transcript; an agent that only calls tools may leave its text out."""
        for message in list_of(body, "messages"):
            calls = isinstance(message, dict) and message.get("tool_calls")
            yield {"content": "", **message} if calls else message

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
            **_head("chat.completion", model),
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": report(reply.usage, "prompt_tokens", "completion_tokens"),
        }

    def writer(self, model: str, body: Json) -> Writer:
        """A chunk for each part, one for the end, and one for the usage if requested."""
        return _Chunks(model, hides_usage=self.hides_usage(body))


class _Chunks(Writer):
    def __init__(self, model: str, *, hides_usage: bool) -> None:
        super().__init__(model, hides_usage=hides_usage)
        self._head = _head("chat.completion.chunk", model)
        self._calls = 0

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant"})

    def text(self, piece: str) -> bytes:
        return self._chunk({"content": piece})

    def call(self, call_id: str, name: str) -> bytes:
        self._calls += 1
        return self._chunk({"tool_calls": [{"index": self._calls - 1, **function_call(call_id, name, "")}]})

    def arguments(self, piece: str) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._calls - 1, "function": {"arguments": piece}}]})

    def end(self, reply: Json) -> bytes:
        ended = self._chunk({}, reply["choices"][0]["finish_reason"])
        usage = b"" if self.hides_usage else event({**self._head, "choices": [], "usage": reply["usage"]})
        return ended + usage + b"data: [DONE]\n\n"

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        return event({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _head(kind: str, model: str) -> Json:
    return {"id": f"chatcmpl-{uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _take(message: Json, delta: Json) -> None:
    message["content"] += delta.get("content") or ""
    calls = message["tool_calls"]
    for call in delta.get("tool_calls") or ():
        if call.get("index", len(calls)) >= len(calls):
            calls.append({"id": call["id"], "function": {"name": call["function"]["name"], "arguments": ""}})
        calls[-1]["function"]["arguments"] += call["function"].get("arguments") or ""


_FIELDS = """chat_template_kwargs enable_thinking frequency_penalty function_call functions include_reasoning logit_bias
logprobs messages min_p modalities n parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_retention
reasoning_effort repetition_penalty response_format safety_identifier seed store stream_options thinking top_k
top_logprobs user verbosity"""
CHAT = Chat(
    "chat", "/v1/chat/completions", "openai", ("max_completion_tokens", "max_tokens"), frozenset(_FIELDS.split())
)
