"""OpenAI's responses."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from labmates.models.reply import Reply
from labmates_doors.protocols.base import Json, Protocol, Writer, event, function_call, openai_usage, report


class Responses(Protocol):
    """The protocol of ``/v1/responses``."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or in the event that ends a stream."""
        response = part.get("response", part)
        return (
            openai_usage(response.get("usage"), "input_tokens", "output_tokens") if isinstance(response, dict) else None
        )

    def messages(self, body: Json) -> Iterator[Json]:
        """The transcript; a model's text and its calls become one message."""
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
        """The tool as in chat completions."""
        names = ("name", "description", "parameters", "strict")
        return {"type": "function", "function": {name: tool[name] for name in names if tool.get(name) is not None}}

    def response_format(self, body: Json) -> Json | None:
        """The format of the text."""
        form = dict((body.get("text") or {}).get("format") or {"type": "text"})
        kind = form.pop("type")
        return None if kind == "text" else {"type": kind} | ({kind: form} if form else {})

    def said(self, parts: Sequence[Json]) -> Json:
        """The text and the calls of the response; of a broken stream, the received text."""
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
        output += [_call_item(call.id, call.name, json.dumps(call.arguments)) for call in reply.tool_calls]
        return {
            **_frame(model),
            "output": output,
            "status": "incomplete" if reply.finish == "length" else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if reply.finish == "length" else None,
            "usage": report(reply.usage, "input_tokens", "output_tokens"),
        }

    def writer(self, model: str, body: Json) -> Writer:
        """An item for each text and call."""
        return _Items(model, hides_usage=self.hides_usage(body))


class _Items(Writer):
    def __init__(self, model: str, *, hides_usage: bool) -> None:
        super().__init__(model, hides_usage=hides_usage)
        self._numbers = count()
        self._frame = _frame(model)
        self._items: list[Json] = []
        self._is_open = False

    def begin(self) -> bytes:
        return self._event("created", response={**self._frame, "status": "in_progress", "output": []})

    def text(self, piece: str) -> bytes:
        begun = b""
        if not self._is_open or self._items[-1]["type"] != "message":
            item = _text_item("")
            begun = self._begun({**item, "content": []}, item)
            begun += self._event("content_part.added", part=item["content"][0], **self._at())
        self._items[-1]["content"][0]["text"] += piece
        return begun + self._event("output_text.delta", delta=piece, logprobs=[], **self._at())

    def call(self, call_id: str, name: str) -> bytes:
        item = _call_item(call_id, name, "")
        return self._begun(item, item)

    def arguments(self, piece: str) -> bytes:
        self._items[-1]["arguments"] += piece
        return self._event("function_call_arguments.delta", delta=piece, **self._at())

    def end(self, reply: Json) -> bytes:
        closed = self._closed()
        return closed + self._event(reply["status"], response={**reply, **self._frame, "output": self._items})

    def failed(self, error: Json) -> bytes:
        return event({**error["error"], "type": "error", "sequence_number": next(self._numbers)}, "error")

    def _begun(self, shown: Json, item: Json) -> bytes:
        closed = self._closed()
        self._items.append(item)
        self._is_open = True
        added = {**shown, "status": "in_progress"}
        return closed + self._event("output_item.added", output_index=len(self._items) - 1, item=added)

    def _closed(self) -> bytes:
        if not self._is_open:
            return b""
        self._is_open = False
        item = self._items[-1]
        if item["type"] == "message":
            [part] = item["content"]
            done = self._event("output_text.done", text=part["text"], logprobs=[], **self._at())
            done += self._event("content_part.done", part=part, **self._at())
        else:
            whole = {"name": item["name"], "arguments": item["arguments"]}
            done = self._event("function_call_arguments.done", **whole, **self._at())
        return done + self._event("output_item.done", output_index=len(self._items) - 1, item=item)

    def _at(self) -> Json:
        item = self._items[-1]
        part = {"content_index": 0} if item["type"] == "message" else {}
        return {"item_id": item["id"], "output_index": len(self._items) - 1, **part}

    def _event(self, kind: str, **data: Any) -> bytes:
        return event({"type": f"response.{kind}", "sequence_number": next(self._numbers), **data}, f"response.{kind}")


def _frame(model: str) -> Json:
    """A response without its content."""
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
    }


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
    space = f"{item['namespace']}__" if item.get("namespace") else ""
    return function_call(item["call_id"], space + item["name"], item["arguments"] or "{}")


def _text_item(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _call_item(call_id: str, name: str, arguments: str) -> Json:
    """The item of a tool call; the name may be ``NAMESPACE/TOOL``."""
    space, _, own = name.rpartition("/")
    named = {"call_id": call_id, "name": own, "arguments": arguments, **({"namespace": space} if space else {})}
    return {"id": f"fc_{call_id}", "type": "function_call", "status": "completed", **named}


_FIELDS = """client_metadata include input instructions max_tool_calls parallel_tool_calls prompt_cache_key
prompt_cache_retention reasoning safety_identifier store stream_options text top_logprobs truncation user"""
RESPONSES = Responses("responses", "/v1/responses", "openai", ("max_output_tokens",), frozenset(_FIELDS.split()))
