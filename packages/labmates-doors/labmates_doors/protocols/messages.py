"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from labmates.models.reply import Reply
from labmates_doors.protocols.base import Json, Protocol, Writer, event, function_call, list_of

_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


class Messages(Protocol):
    """The protocol of ``/v1/messages``."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply, or in the events that begin and end a stream."""
        message = part.get("message", part)
        usage = message.get("usage") if isinstance(message, dict) else None
        if not isinstance(usage, dict):
            return None
        read, written = (usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
        tokens: Json = {"output_tokens": usage.get("output_tokens")}
        if isinstance(count := usage.get("input_tokens"), int):
            tokens["input_tokens"] = count + read + written
            tokens["input_token_details"] = {"cache_read": read, "cache_creation": written}
        return tokens

    def error(self, status: int, message: str) -> Json:
        """The body of an error."""
        kind = {402: "billing_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return {"type": "error", "error": {"type": kind.get(status, "invalid_request_error"), "message": message}}

    def messages(self, body: Json) -> Iterator[Json]:
        """The transcript; tool results come before the user's other content."""
        if system := body.get("system"):
            yield {"role": "system", "content": _blocks(system)}
        for message in list_of(body, "messages"):
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if block["type"] == "tool_result":
                    result = block.get("content") or ""
                    yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _blocks(result)}
            yield from _said(message["role"], [block for block in blocks if block["type"] != "tool_result"])

    def tool(self, tool: Json) -> Json:
        """The tool as a function."""
        # In the order of the lab's own tools: the estimate of a text depends on the order of its parts.
        described = {"name": tool["name"], "description": tool.get("description", "")}
        return {"type": "function", "function": {**described, "parameters": tool["input_schema"]}}

    def response_format(self, body: Json) -> Json | None:
        """The JSON schema of the output."""
        form = (body.get("output_config") or {}).get("format")
        return {"type": "json_schema", "json_schema": {"name": "reply", "schema": form["schema"]}} if form else None

    def said(self, parts: Sequence[Json]) -> Json:
        """The text and the calls of the message."""
        blocks: list[Json] = [dict(block) for block in parts[0].get("content", ())]
        for part in parts:
            if part["type"] == "content_block_start":
                blocks.append({**part["content_block"], "json": ""})
            elif part["type"] == "content_block_delta":
                delta, block = part["delta"], blocks[part["index"]]
                block["text"] = block.get("text", "") + delta.get("text", "")
                block["json"] += delta.get("partial_json", "")
        blocks = [block for block in blocks if block["type"] in ("text", "tool_use")]
        for block in blocks:
            if written := block.pop("json", ""):
                block["input"] = json.loads(written)
        [message] = list(_said("assistant", blocks)) or [{"role": "assistant", "content": ""}]
        return message

    def reply(self, reply: Reply, model: str) -> Json:
        """A message."""
        content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in reply.tool_calls
        ]
        tokens = reply.usage
        usage = {
            "input_tokens": tokens.input_tokens - tokens.cached_tokens - tokens.cache_write_tokens,
            "output_tokens": tokens.output_tokens,
            "cache_read_input_tokens": tokens.cached_tokens,
            "cache_creation_input_tokens": tokens.cache_write_tokens,
        }
        return _message(model, content, _STOPS.get(reply.finish, "end_turn"), usage)

    def writer(self, model: str, body: Json) -> Writer:
        """A block for each text and call; the usage comes at the end."""
        return _Blocks(model, hides_usage=self.hides_usage(body))


class _Blocks(Writer):
    def __init__(self, model: str, *, hides_usage: bool) -> None:
        super().__init__(model, hides_usage=hides_usage)
        self._index, self._kind = -1, ""

    def begin(self) -> bytes:
        usage = {"input_tokens": 0, "output_tokens": 0}
        return _event("message_start", message=_message(self.model, [], None, usage))

    def text(self, piece: str) -> bytes:
        begun = b"" if self._kind == "text" else self._block({"type": "text", "text": ""})
        return begun + self._delta({"type": "text_delta", "text": piece})

    def call(self, call_id: str, name: str) -> bytes:
        return self._block({"type": "tool_use", "id": call_id, "name": name, "input": {}})

    def arguments(self, piece: str) -> bytes:
        return self._delta({"type": "input_json_delta", "partial_json": piece})

    def end(self, reply: Json) -> bytes:
        end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
        return self._closed() + _event("message_delta", delta=end, usage=reply["usage"]) + _event("message_stop")

    def failed(self, error: Json) -> bytes:
        return event(error, "error")

    def _block(self, block: Json) -> bytes:
        closed = self._closed()
        self._index, self._kind = self._index + 1, block["type"]
        return closed + _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: Json) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _closed(self) -> bytes:
        return _event("content_block_stop", index=self._index) if self._kind else b""


def _message(model: str, content: list[Json], stop: str | None, usage: Json) -> Json:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def _said(role: str, blocks: list[Json]) -> Iterator[Json]:
    """The message of some blocks, if not empty; thinking is dropped, since only its provider can read it."""
    calls = [block for block in blocks if block["type"] == "tool_use"]
    content = _blocks([block for block in blocks if block["type"] not in ("tool_use", *_THOUGHTS)])
    message: Json = {"role": role, "content": content or ""}
    if calls:
        message["tool_calls"] = [function_call(call["id"], call["name"], json.dumps(call["input"])) for call in calls]
    if content or calls:
        yield message


_THOUGHTS = ("thinking", "redacted_thinking")


def _blocks(content: Any) -> Any:
    """Text, or blocks of text and images, as in chat completions."""
    if isinstance(content, str):
        return content
    blocks = [_block(block) for block in content]
    if all(block["type"] == "text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return blocks


def _block(block: Json) -> Json:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        source = block["source"]
        url = source.get("url") or f"data:{source['media_type']};base64,{source['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    raise ValueError(f"this model, which another protocol serves, takes no blocks of type '{block['type']}'")


def _event(kind: str, **data: Any) -> bytes:
    return event({"type": kind, **data}, kind)


_FIELDS = "cache_control context_management messages output_config system thinking top_k"
MESSAGES = Messages(
    "messages", "/v1/messages", "anthropic", ("max_tokens",), frozenset(_FIELDS.split()), "stop_sequences"
)
