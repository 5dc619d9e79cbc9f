"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from labmates.models.protocols.base import Json, Protocol, event, function_call, list_of
from labmates.models.reply import Reply

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
        """The transcript; results of tools come before what the user says beside them."""
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
        function = {"name": tool["name"], "parameters": tool["input_schema"]}
        return {"type": "function", "function": function | {"description": tool.get("description", "")}}

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
        usage = reply.usage
        return {
            "id": f"msg_{uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": _STOPS.get(reply.finish, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cached_tokens,
                "cache_creation_input_tokens": usage.cache_write_tokens,
            },
        }

    def events(self, reply: Json, body: Json) -> Iterator[bytes]:
        """The stream of the whole message, each block in one piece."""
        del body
        empty = {**reply, "content": [], "stop_reason": None, "usage": {**reply["usage"], "output_tokens": 0}}
        yield _event("message_start", message=empty)
        for index, block in enumerate(reply["content"]):
            if block["type"] == "text":
                begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                begun = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield _event("content_block_start", index=index, content_block=begun)
            yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        end = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=end, usage=reply["usage"])
        yield _event("message_stop")


def _said(role: str, blocks: list[Json]) -> Iterator[Json]:
    """The message of some blocks, if they have any content; thoughts are signed for their own provider alone."""
    calls = [block for block in blocks if block["type"] == "tool_use"]
    content = _blocks([block for block in blocks if block["type"] not in ("tool_use", *_THOUGHTS)])
    message: Json = {"role": role, "content": content or ""}
    if calls:
        message["tool_calls"] = [function_call(call["id"], call["name"], json.dumps(call["input"])) for call in calls]
    if content or calls:
        yield message


_THOUGHTS = ("thinking", "redacted_thinking")


def _blocks(content: Any) -> Any:
    """Text, or blocks of text and pictures, as chat completions have them."""
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


MESSAGES = Messages("messages", "/v1/messages", "anthropic", ("max_tokens",), "stop_sequences")
