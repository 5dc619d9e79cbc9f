"""OpenAI's protocol: assembly of streamed replies, and their messages.

The JSON comes from a server and is not trusted. Whole and streamed replies give the same message.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

from labmates.budgets.tokens import TEXT_BLOCKS, Usage, read_count
from labmates.models.failures import BrokenReplyError
from labmates.models.provider_words import COST, reported_cost
from labmates.models.reply import Piece
from labmates.util.grouping import grouped
from labmates.util.safe_text import UnsafeValueError, safe_value

Json = dict[str, Any]
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""The servers' fields for reasoning (llama.cpp, SGLang, DeepSeek and older vLLM; newer vLLM, OpenRouter)."""
WIRE = "wire"
"""Key of LangChain's ``additional_kwargs`` for what a server attached to a message and to its tool calls."""
_READ = {"role", "content", "tool_calls", "function_call", "audio"}
"""Fields of a message that are read; all others are attached to it. Audio can't be sent back."""
_READ_OF_CALL = {"id", "type", "index", "function", "number", "deltas"}
_MEDIA = ("image_url", "image", "audio", "input_audio", "output_audio", "file")
_STREAMED = {"text", "summary", "data", "signature", "content", "refusal"}
"""Texts that come in pieces, besides those of reasoning; other texts are repeated with every piece."""
_DECODER = json.JSONDecoder()


def read_completion(body: bytes) -> Json:
    """Parse the body of a whole reply.

    Raises `BrokenReplyError` if it is not a JSON object, or has an error or no choice.
    """
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenReplyError("the answer is not JSON") from error
    if not isinstance(parsed, dict):
        raise BrokenReplyError("the answer is not a JSON object")
    return checked(parsed)


def checked(completion: Json) -> Json:
    """A whole reply without an error of the server; raises `BrokenReplyError` for others."""
    choices = completion.get("choices")
    usage = completion.get("usage")
    if completion.get("error") or completion.get("object") == "error":
        raise server_error(completion, usage)
    if not isinstance(choices, list) and {"message", "detail"} & completion.keys():
        raise server_error(completion, usage)
    if not isinstance(choices, list):
        raise BrokenReplyError("the answer has no choices: is this a chat completions server?")
    if not _dicts(choices):
        raise server_error({"error": "the answer has no choice"}, usage)
    if error := choices[0].get("error") if isinstance(choices[0], dict) else None:
        raise server_error({"error": error}, usage)
    return completion


def server_error(body: Json, usage: Any) -> BrokenReplyError:
    """The error that a server reports in place of a reply, with the usage that it charges for."""
    counts = _usage(usage) or {}
    prompt, written = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    return BrokenReplyError(
        "the answer holds an error",
        body=body,
        usage=Usage(prompt, written) if prompt or written else None,
        cost=reported_cost(usage),
    )


def page_error(title: str) -> BrokenReplyError:
    """The error of a page with status 200 in place of a reply; one that names no fault of a server stays."""
    passing = re.search(r"\b(?:429|5\d\d)\b|unavailable|gateway|time-?out|overload|maintenance|try again", title, re.I)
    reason = f"the address answers with a page, not as a model's server: {title}"
    return BrokenReplyError(reason, kind="retry" if passing else "refused")


class StreamedReply:
    """Collects the events of a streamed reply; `whole` then returns it as an unstreamed reply."""

    def __init__(self, listener: Callable[[Piece], None] = lambda _piece: None) -> None:
        self._listener = listener
        self._head: Json = {}
        self._content: list[Any] = []
        self._deltas: list[Json] = []
        self._calls: dict[int, list[Json]] = {}
        self._finish: Any = None
        self._begun = False
        self._done = False
        self._names_error = False

    def add(self, line: bytes) -> None:
        """Add a line of the event stream.

        Raises `BrokenReplyError` if the line holds an error, or anything but a JSON object.
        """
        if line.startswith(b"event:"):
            self._names_error = line[len(b"event:") :].strip() == b"error"
        if not line.startswith(b"data:"):
            return
        data = line[len(b"data:") :].decode("utf-8", "replace").strip()
        if data == "[DONE]":
            self._done = True
            return
        try:
            event, end = _DECODER.raw_decode(data)  # as json.loads without its search for white space
        except (ValueError, RecursionError) as error:
            raise BrokenReplyError("an event of the stream is not JSON") from error
        if end < len(data):
            raise BrokenReplyError("an event of the stream is not JSON")
        if not isinstance(event, dict):
            raise BrokenReplyError("an event of the stream is not a reply")
        if self._names_error or event.get("error") or event.get("object") == "error":
            raise server_error(event, event.get("usage") or self._head.get("usage"))
        self._take(event)

    def whole(self) -> Json:
        """The whole reply. Raises `BrokenReplyError` if the stream ended within the reply, or nests too deeply."""
        if not self._done and self._finish is None:
            raise BrokenReplyError("the connection was cut within the reply")
        try:
            choices = [{"message": self._message(), "finish_reason": self._finish}] if self._begun else []
        except RecursionError as error:
            raise BrokenReplyError("the events of the stream are nested too deeply") from error
        return checked({**self._head, "choices": choices})

    def _message(self) -> Json:
        calls = [merge(call["deltas"]) | call for index in sorted(self._calls) for call in self._calls[index]]
        return {"content": _whole_content(self._content), **merge(self._deltas), "tool_calls": calls}

    def _take(self, event: Json) -> None:
        # Some servers repeat the usage so far in every event: the last one counts.
        for key in ("id", "model", "usage"):
            if value := event.get(key):
                self._head[key] = value
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        if error := choices[0].get("error"):
            raise server_error({"error": error}, event.get("usage") or self._head.get("usage"))
        self._begun = True
        self._finish = choices[0].get("finish_reason") or self._finish
        if isinstance(delta := choices[0].get("delta"), dict):
            self._take_delta(delta)

    def _take_delta(self, delta: Json) -> None:
        if more := {name: value for name, value in delta.items() if name not in _READ}:
            self._deltas.append(more)
        if content := delta.get("content"):
            self._content.append(content)
        if text := reasoning_in(delta):
            self._listener(Piece(text, "reasoning"))
        for text in _texts(content):
            self._listener(Piece(text))
        if calls := delta.get("tool_calls"):
            for call in _dicts(calls):
                self._take_call(call)

    def _take_call(self, call: Json) -> None:
        function = _dict(call.get("function"))
        index, id_, name = call.get("index"), _text(call.get("id")), _text(function.get("name"))
        if not isinstance(index, int):  # Servers without an index send each call in one piece.
            index = max(self._calls, default=-1) + 1
        # Some servers give all calls the index 0; a name with a new id begins a new call.
        here = self._calls.setdefault(index, [])
        known = next((begun for begun in here if id_ and begun["id"] == id_), None)
        if here and known is None and not (id_ and name and here[-1]["id"]):
            known = here[-1]
        elif known is not None and known["function"]["name"] == name:
            name = ""  # repeated with every piece
        if known is None:
            number = sum(map(len, self._calls.values()))
            known = {"id": "", "function": {"name": "", "arguments": ""}, "number": number, "deltas": []}
            here.append(known)
        known["deltas"].append({name: value for name, value in call.items() if name not in _READ_OF_CALL})
        known["id"] = known["id"] or id_
        arguments = _arguments(function.get("arguments"))
        known["function"]["name"] += name
        known["function"]["arguments"] += arguments
        self._listener(Piece(arguments, "call", known["number"], id_, name))


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of a body as they arrive, split at line feeds only (httpx also splits at U+2028, which JSON allows)."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield lines
    yield [rest]


def message_of(completion: Json) -> AIMessage:
    """The message of a completion; the reasoning, and what the server attached (`WIRE`), are in ``additional_kwargs``.

    Without a choice, it is empty.
    """
    choice = (_dicts(completion.get("choices")) or [{}])[0]
    message, finish, usage = _dict(choice.get("message")), _text(choice.get("finish_reason")), completion.get("usage")
    said = AIMessage(
        "".join(_texts(message.get("content"))),
        usage_metadata=cast(Any, _usage(usage)),
        additional_kwargs={WIRE: attached_by_server(completion)},
        response_metadata={"finish_reason": finish or None, "model_name": _text(completion.get("model"))},
    )
    if (cost := reported_cost(usage)) is not None:
        said.response_metadata[COST] = cost
    if reasoning := reasoning_in(message):
        said.additional_kwargs["reasoning_content"] = reasoning
    calls = _dicts(message.get("tool_calls"))
    if isinstance(message.get("function_call"), dict):  # The protocol of 2023, which some servers still speak.
        calls.append({"function": message["function_call"]})
    for place, call in enumerate(calls):
        _add_call(said, call, cut=finish == "length" and place == len(calls) - 1)
    return said


def _add_call(said: AIMessage, call: Json, *, cut: bool) -> None:
    function = _dict(call.get("function"))
    id_, name, written = _text(call.get("id")), _text(function.get("name")), _arguments(function.get("arguments"))
    # No arguments at all mean an empty object, unless the reply was cut before they began.
    arguments = None if cut and not written else read_arguments(written)
    if arguments is not None:
        said.tool_calls.append(ToolCall(type="tool_call", id=id_, name=name, args=arguments))
        return
    said.invalid_tool_calls.append(
        InvalidToolCall(type="invalid_tool_call", id=id_, name=name, args=written, error="no JSON object")
    )


def read_arguments(arguments: Any) -> Json | None:
    """A tool call's arguments as a JSON object: None if invalid, empty if missing."""
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments, strict=False) if arguments.strip() else {}
        value = safe_value({} if arguments is None else arguments)
    except (ValueError, RecursionError, UnsafeValueError):
        return None
    return value if isinstance(value, dict) else None


def attached_by_server(completion: Json) -> Json:
    """What a server attached to its reply: unknown fields of the ``message``, and of ``calls``, each with its id."""
    message = _dict((_dicts(completion.get("choices")) or [{}])[0].get("message"))
    fields = {name: value for name, value in message.items() if name not in _READ and _tells(name, value)}
    if _is_mixed(content := message.get("content")):
        fields["content"] = [block for block in content or () if _type_of(block) not in ("", *_MEDIA)]
    calls = [
        [_text(call.get("id")), {name: value for name, value in call.items() if name not in _READ_OF_CALL and value}]
        for call in _dicts(message.get("tool_calls"))
    ]
    return {"message": fields, "calls": calls if any(more for _, more in calls) else []}


def merge(deltas: Sequence[Json]) -> Json:
    """An object from the pieces of a stream: texts are joined, lists by index and type, and the last of others counts.

    >>> merge([{"a": [{"index": 0, "text": "H", "format": "x"}]}, {"a": [{"index": 0, "text": "i", "format": "x"}]}])
    {'a': [{'index': 0, 'text': 'Hi', 'format': 'x'}]}
    """
    members = grouped((name, value) for delta in deltas for name, value in delta.items() if value is not None)
    return {name: _merged(name, values) for name, values in members.items()}


def _merged(name: str, values: Sequence[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, dict) for value in values):
        return merge(values)
    if all(isinstance(value, list) for value in values):
        return _merged_items([item for value in values for item in value])
    if all(isinstance(value, str) for value in values) and (name in _STREAMED or "reason" in name or "think" in name):
        return "".join(values)
    return values[-1]


def _merged_items(items: Sequence[Any]) -> list[Any]:
    groups: list[list[Any]] = []
    indexed: dict[tuple[str, int], list[Any]] = {}
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        if isinstance(index, int):
            key = (str(item.get("type")), index)
            if key not in indexed:
                groups.append(indexed.setdefault(key, []))
            indexed[key].append(item)
        elif groups and _continues(item, groups[-1][-1]):
            groups[-1].append(item)
        else:
            groups.append([item])
    return [group[0] if len(group) == 1 else merge(group) for group in groups]


def _continues(item: Any, before: Any) -> bool:
    """Whether an item of a list without indices is the next piece of a text."""
    if not isinstance(item, dict) or not isinstance(before, dict) or item.get("type") != before.get("type"):
        return False
    is_text = any(name in item for name in ("text", "summary", "thinking"))
    return is_text and "index" not in before and item.get("id") in (None, before.get("id"))


def _tells(name: str, value: Any) -> bool:
    """Whether a field says something: DeepSeek wants even empty reasoning back."""
    return bool(value) or (value == "" and name in REASONING_FIELDS)


def reasoning_in(message: Json) -> str:
    """The reasoning in a message or a piece of it: a field, or blocks of its content (Mistral)."""
    fields = [text for text in map(message.get, REASONING_FIELDS) if isinstance(text, str) and text]
    content = message.get("content")
    blocks = [block for block in content if _type_of(block) == "thinking"] if isinstance(content, list) else []
    return "".join(fields[:1] or [text for block in blocks for text in _texts(block.get("thinking"))])


def _is_mixed(content: Any) -> bool:
    """Whether a message's content holds more than text and media, which can't be sent back."""
    return isinstance(content, list) and not {*map(_type_of, content)} <= {"", *TEXT_BLOCKS, *_MEDIA}


def _type_of(block: Any) -> str:
    """The type of a block of content; a text may be bare."""
    return "text" if isinstance(block, str) else _text(_dict(block).get("type"))


def _whole_content(pieces: Sequence[Any]) -> Any:
    if not any(map(_is_mixed, pieces)):
        return "".join(text for piece in pieces for text in _texts(piece))
    listed = ([{"type": "text", "text": piece}] if isinstance(piece, str) else piece for piece in pieces)
    return _merged_items([block for blocks in listed if isinstance(blocks, list) for block in blocks])


def _usage(usage: Any) -> Json | None:
    """Reported tokens in LangChain's terms; None without a report."""
    reported = _dict(usage)
    if not reported:
        return None
    read, written = (read_count(reported.get(name)) or 0 for name in ("prompt_tokens", "completion_tokens"))
    details = _dict(reported.get("prompt_tokens_details"))
    # DeepSeek counts beside the details; OpenRouter reports cache writes.
    cached = read_count(details.get("cached_tokens")) or read_count(reported.get("prompt_cache_hit_tokens"))
    stored = read_count(details.get("cache_write_tokens"))
    reasoning = read_count(_dict(reported.get("completion_tokens_details")).get("reasoning_tokens"))
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read_count(reported.get("total_tokens")) or read + written,
        "input_token_details": {"cache_read": cached or 0, "cache_creation": stored or 0},
        "output_token_details": {"reasoning": reasoning or 0},
    }


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks: Iterable[Any] = content if isinstance(content, list) else ()
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return [text for text in texts if isinstance(text, str)]


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
