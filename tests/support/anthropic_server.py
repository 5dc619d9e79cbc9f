"""A real HTTP server that speaks Anthropic's messages protocol, with the behaviours of `openai_server`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence

from tests.support.openai_server import (
    Answer,
    Json,
    OpenAIServer,
    Recorded,
    _head,
    _pieces,
    _send,
    _usage,
    fault,
    let_go,
)


class AnthropicServer(OpenAIServer):
    """The server. Behaviours get the request as OpenAI's protocol would have it; `requests` holds it as it arrived."""

    @property
    def base_url(self) -> str:
        """What a client takes as base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def _respond(self, recorded: Recorded, writer: asyncio.StreamWriter) -> bool:
        if recorded.path.partition("?")[0].endswith("/models"):
            return await _send(writer, Answer(body={"data": self._listed}))
        if not recorded.path.partition("?")[0].endswith("/v1/messages"):
            return await _send(writer, fault(404, {"type": "error", "error": {"message": "not found"}}))
        number = len(self.requests)
        self.requests.append(recorded)
        asked = as_openai(recorded.body)
        answer = await self._answer(asked, number)
        if answer.body is not None or answer.status != 200:
            return await _send(writer, answer)
        whole = as_anthropic(answer, asked)
        if recorded.body.get("stream"):
            return await _send_events(writer, answer, list(_events(whole)))
        return await _send(writer, Answer(body=whole, headers=answer.headers))


async def _send_events(writer: asyncio.StreamWriter, answer: Answer, events: Sequence[bytes]) -> bool:
    length = str(sum(map(len, events)))
    writer.write(_head(200, {"content-type": "text/event-stream", "content-length": length, **answer.headers}))
    for number, event in enumerate(events):
        await let_go(answer, number)
        writer.write(event)
        await writer.drain()
    return True


def as_openai(body: Json) -> Json:
    """Return a request as OpenAI's protocol has it."""
    system = body.get("system", "")
    messages: list[Json] = [{"role": "system", "content": _text(system)}] if system else []
    for message in body["messages"]:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        results = [block for block in blocks if block["type"] == "tool_result"]
        messages += [
            {"role": "tool", "tool_call_id": one["tool_use_id"], "content": _text(one["content"])} for one in results
        ]
        calls = [
            {
                "id": one["id"],
                "type": "function",
                "function": {"name": one["name"], "arguments": json.dumps(one["input"])},
            }
            for one in blocks
            if one["type"] == "tool_use"
        ]
        if text := _text([block for block in blocks if block["type"] == "text"]):
            messages.append({"role": message["role"], "content": text})
        if calls:
            messages += [] if text else [{"role": "assistant", "content": ""}]
            messages[-1]["tool_calls"] = calls
    tools = [
        {
            "type": "function",
            "function": {"name": one["name"], "description": one["description"], "parameters": one["input_schema"]},
        }
        for one in body.get("tools", [])
    ]
    found: Json = {"model": body["model"], "messages": messages, "max_tokens": body["max_tokens"]}
    return {**found, "tools": tools} if tools else found


def as_anthropic(answer: Answer, asked: Json) -> Json:
    """Return an answer as Anthropic's protocol has it."""
    content: list[Json] = [*answer.message.get("blocks", ())]
    content += [{"type": "text", "text": answer.text}] if answer.text else []
    for call in answer.calls:
        arguments = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    words = {"": "tool_use" if answer.calls else "end_turn", "stop": "end_turn", "length": "max_tokens"}
    finish = words.get(answer.finish or "", answer.finish)
    usage = _usage(answer, asked) or {}
    counts = {"input_tokens": usage.get("prompt_tokens", 0), "output_tokens": usage.get("completion_tokens", 0)}
    counts |= {name: count for name, count in usage.items() if name.startswith("cache_")}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": content,
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": counts,
    }


def _events(whole: Json) -> Iterator[bytes]:
    """Yield the events of a message that is streamed: text and arguments come in pieces."""

    def event(kind: str, **data: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield event("message_start", message=begun)
    for index, block in enumerate(whole["content"]):
        empty = {**block, **({"input": {}} if block["type"] == "tool_use" else {})}
        empty |= {name: "" for name in ("text", "thinking", "signature") if name in block}
        yield event("content_block_start", index=index, content_block=empty)
        for delta in _deltas(block):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage=whole["usage"])  # cumulative, the prompt included
    yield event("message_stop")


def _deltas(block: Json) -> Iterator[Json]:
    """Yield the pieces of a block; redacted thinking comes whole."""
    for name in ("text", "thinking"):
        for piece in _pieces(block.get(name)):
            yield {"type": f"{name}_delta", name: piece}
    if "signature" in block:
        yield {"type": "signature_delta", "signature": block["signature"]}
    if block["type"] == "tool_use":
        for piece in _pieces(json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": piece}


def _text(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
