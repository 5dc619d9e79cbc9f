"""OpenAI's responses."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from labmates.models.protocols.base import Json, Protocol, event, function_call, openai_usage, report
from labmates.models.reply import Reply, ToolCall


class Responses(Protocol):
    """The protocol of ``/v1/responses``."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or in the event that ends a stream."""
        response = part.get("response", part)
        return (
            openai_usage(response.get("usage"), "input_tokens", "output_tokens") if isinstance(response, dict) else None
        )

    def messages(self, body: Json) -> Iterator[Json]:
        """The transcript; what the model said and the calls beside it are one message."""
        transcript: list[Json] = []
        if instructions := body.get("instructions"):
            transcript.append({"role": "system", "content": instructions})
        given = body["input"]
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            if item.get("type") == "function_call":
                if not transcript or transcript[-1]["role"] != "assistant":
                    transcript.append({"role": "assistant", "content": ""})
                transcript[-1].setdefault("tool_calls", []).append(_call(item))
            elif item.get("type") != "reasoning":  # encrypted for its own provider
                transcript.append(_message(item))
        yield from transcript

    def tool(self, tool: Json) -> Json:
        """The tool as chat completions have it."""
        names = ("name", "description", "parameters", "strict")
        return {"type": "function", "function": {name: tool[name] for name in names if tool.get(name) is not None}}

    def response_format(self, body: Json) -> Json | None:
        """The format of the text."""
        form = dict((body.get("text") or {}).get("format") or {"type": "text"})
        kind = form.pop("type")
        return None if kind == "text" else {"type": kind} | ({kind: form} if form else {})

    def said(self, parts: Sequence[Json]) -> Json:
        """The text and the calls of the response; of a stream that broke off, the text that came."""
        whole = parts[-1].get("response", parts[-1])
        if "output" in whole:
            items = [item for item in whole["output"] if item["type"] in ("message", "function_call")]
            texts = [block.get("text", "") for item in items for block in item.get("content", ())]
            calls = [_call(item) for item in items if item["type"] == "function_call"]
        else:
            texts = [part["delta"] for part in parts if part["type"] == "response.output_text.delta"]
            calls = []
        return {"role": "assistant", "content": "".join(texts), "tool_calls": calls}

    def reply(self, reply: Reply, model: str) -> Json:
        """A response."""
        output = [_text_item(reply.text)] if reply.text else []
        output += [_call_item(call) for call in reply.tool_calls]
        return {
            "id": f"resp_{uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "model": model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "status": "incomplete" if reply.finish == "length" else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if reply.finish == "length" else None,
            "usage": report(reply.usage, "input_tokens", "output_tokens"),
        }

    def events(self, reply: Json, body: Json) -> Iterator[bytes]:
        """The stream of the whole response, each item in one piece."""
        del body
        number = count()

        def made(kind: str, **data: Any) -> bytes:
            return event({"type": f"response.{kind}", "sequence_number": next(number), **data}, f"response.{kind}")

        begun = {**reply, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        yield made("created", response=begun)
        for index, item in enumerate(reply["output"]):
            at = {"item_id": item["id"], "output_index": index}
            empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
            added = {**item, "status": "in_progress", **empty}
            yield made("output_item.added", output_index=index, item=added)
            if item["type"] == "message":
                [part] = item["content"]
                at["content_index"] = 0
                yield made("content_part.added", part={**part, "text": ""}, **at)
                yield made("output_text.delta", delta=part["text"], logprobs=[], **at)
                yield made("output_text.done", text=part["text"], logprobs=[], **at)
                yield made("content_part.done", part=part, **at)
            else:
                yield made("function_call_arguments.delta", delta=item["arguments"], **at)
                yield made("function_call_arguments.done", name=item["name"], arguments=item["arguments"], **at)
            yield made("output_item.done", output_index=index, item=item)
        yield made(reply["status"], response=reply)


def _message(item: Json) -> Json:
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])}
    if item.get("type", "message") != "message":
        raise ValueError(f"this model, which another protocol serves, takes no items of type '{item['type']}'")
    return {"role": item["role"], "content": _content(item["content"])}


def _content(content: Any) -> Any:
    """Text, or blocks of text and pictures, as chat completions have them."""
    if isinstance(content, str):
        return content
    if all("text" in block for block in content):
        return "".join(block["text"] for block in content)
    return [
        {"type": "text", "text": block["text"]}
        if "text" in block
        else {"type": "image_url", "image_url": {"url": block["image_url"]}}
        for block in content
    ]


def _call(item: Json) -> Json:
    return function_call(item["call_id"], item["name"], item["arguments"] or "{}")


def _text_item(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _call_item(call: ToolCall) -> Json:
    named = {"call_id": call.id, "name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": f"fc_{call.id}", "type": "function_call", "status": "completed", **named}


RESPONSES = Responses("responses", "/v1/responses", "openai", ("max_output_tokens",))
