"""HTTP protocols for calling models: bounds on a request's cost, the usage of a reply, and translation.

A request to a model behind another protocol is translated to LangChain's messages, and the reply back to the protocol
of the request.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from labmates.budgets.tokens import Usage
from labmates.errors import LabmatesError
from labmates.models.reply import Reply
from labmates.models.sending import ANY_TOOL

Json = dict[str, Any]

TOO_LONG = 413
"""HTTP status for a too long request."""
IMAGE_TOKENS = 10_000
"""Upper bound on the tokens of an image by URL."""
MOST_PARTS = 200_000
"""Most values in the JSON of a request: its work follows their number more than its bytes."""
_OWN_TOOLS = ("function", "custom")
_UNBOUNDED = (
    *(
        "previous_response_id",
        "conversation",
        "background",
        "prompt",
        "container",
        "mcp_servers",
    ),  # stored or run at the provider
    *("audio", "prediction"),  # billed separately from the reply's tokens
)

COMMON_FIELDS = ("metadata", "model", "service_tier", "stream", "temperature", "tool_choice", "tools", "top_p")

_UNTRANSLATED: Mapping[str, Sequence[Any]] = {
    "top_p": (None, 1),
    "top_k": (None,),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "logit_bias": (None, {}),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "functions": (None, []),
    "function_call": (None, "auto", "none"),
    "modalities": (None, ["text"]),
}
"""Settings without a translation, with the values that have no effect."""


class RefusedRequestError(LabmatesError):
    """A refused request: malformed, of unbounded cost, or without funds; `status` is the HTTP status."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Prompt:
    """A request in LangChain's terms; `tools` follow chat completions.

    `tool_choice` is the tool that the reply must call, or `ANY_TOOL`; empty for an optional call. `stop` texts end the
    reply. `one_call` forbids parallel calls. Tools of `namespaces` are named ``NAMESPACE__TOOL``.
    """

    messages: list[BaseMessage]
    tools: list[Json]
    tool_choice: str
    temperature: float | None
    seed: int
    response_format: Json | None
    stop: tuple[str, ...]
    one_call: bool
    namespaces: tuple[str, ...]

    def ended(self, reply: Reply) -> Reply:
        """The reply up to the first stop text, with the calls that the request allows."""
        ends = [place for text in self.stop if (place := reply.text.find(text)) >= 0]
        if ends:
            return replace(reply, text=reply.text[: min(ends)], tool_calls=(), finish="stop")
        calls = reply.tool_calls[:1] if self.one_call else reply.tool_calls
        return replace(reply, tool_calls=tuple(replace(call, name=self.placed(call.name)) for call in calls))

    def placed(self, name: str) -> str:
        """The name of a called tool as ``NAMESPACE/TOOL``."""
        space = next((space for space in self.namespaces if name.startswith(f"{space}__")), None)
        return name if space is None else f"{space}/{name[len(space) + 2 :]}"


class Writer(ABC):
    """Writes a reply as a stream of events; each method returns the bytes to send.

    `hides_usage` leaves out the usage at the end, where the protocol lets programs choose.
    """

    def __init__(self, model: str, *, hides_usage: bool) -> None:
        self.model, self.hides_usage = model, hides_usage

    @abstractmethod
    def begin(self) -> bytes:
        """The beginning."""

    @abstractmethod
    def text(self, piece: str) -> bytes:
        """The next part of the text."""

    @abstractmethod
    def call(self, call_id: str, name: str) -> bytes:
        """The beginning of a tool call."""

    @abstractmethod
    def arguments(self, piece: str) -> bytes:
        """The next part of the call's JSON arguments."""

    @abstractmethod
    def end(self, reply: Json) -> bytes:
        """The end, from the body of the whole reply."""

    def failed(self, error: Json) -> bytes:
        """The end of a failed reply."""
        return event(error)


@dataclass(frozen=True)
class Protocol(ABC):
    """An endpoint of a provider's API; `path` is the same at the gateway and at the provider.

    `limits` are the names of the output limit, the current one first; `stop` is the name of the stop texts. Of a
    request with these `fields`, the gateway knows the cost.
    """

    name: str
    path: str
    provider: str
    limits: tuple[str, ...]
    fields: frozenset[str]
    stop: str = "stop"

    def check(self, body: Json) -> None:
        """Check that the cost of a request has a bound.

        Raises `RefusedRequestError` if it refers to text at the provider, or uses features that are billed separately
        from tokens.
        """
        for name in _UNBOUNDED:
            if body.get(name):
                raise RefusedRequestError(f"'{name}' is not supported: its cost is unknown before the call")
        if body.get("service_tier") not in (None, "auto", "default", "flex", "standard_only"):
            raise RefusedRequestError("'service_tier' must be auto, default or flex: other tiers have other prices")
        if "web_search_options" in body:
            raise RefusedRequestError(
                "'web_search_options' is not supported: searches are billed separately from tokens"
            )
        if body.get("n") not in (None, 1):
            raise RefusedRequestError("'n' must be 1: ask again for another reply")
        if not isinstance(body.get("stream_options"), dict | None):
            raise RefusedRequestError("'stream_options' must be an object")
        self._check_tools(list_of(body, "tools"))

    def check_fields(self, body: Json, allowed: Collection[str]) -> None:
        """Check that a request passed on unchanged has only fields of known cost, and those `allowed` by the user."""
        known = {*COMMON_FIELDS, *self.fields, *self.limits, self.stop, *allowed}
        if unknown := next((name for name in body if name not in known), None):
            raise RefusedRequestError(
                f"'{unknown:.80}' is not a field of {self.path} of known cost; leave it out, or start the gateway with "
                f"--allow-field {unknown:.80}"
            )

    def _check_tools(self, tools: Sequence[Any]) -> None:
        for tool in tools:
            kind = tool.get("type") if isinstance(tool, Mapping) else None
            if kind == "namespace":
                self._check_tools(list_of(tool, "tools"))
            elif not (kind in _OWN_TOOLS or (self.provider == "anthropic" and kind is None)):
                raise RefusedRequestError(f"tool of type '{kind}' is not supported: the provider bills it separately")

    def wanted(self, body: Json) -> int | None:
        """The output limit of a request; None without one."""
        given = [body[name] for name in self.limits if body.get(name) is not None]
        if any(isinstance(limit, bool) or not isinstance(limit, int) or limit < 1 for limit in given):
            raise RefusedRequestError(f"'{self.limits[0]}' must be a number of tokens, at least 1")
        return min(given, default=None)

    def limited(self, body: Json, model: str, limit: int) -> Json:
        """The request for the provider, with the provider's name of the model and an output limit."""
        sent = {**body, "model": model}
        present = [name for name in self.limits if body.get(name) is not None] or [self.limits[0]]
        sent.update(dict.fromkeys(present, limit))
        if self.hides_usage(body):
            sent["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        return sent

    def hides_usage(self, body: Json) -> bool:
        """Whether the program declined the usage at the end of a stream, which the gateway needs."""
        if self.name != "chat" or not body.get("stream"):
            return False
        return not (body.get("stream_options") or {}).get("include_usage")

    def prompt(self, body: Json) -> Prompt:
        """The request in LangChain's terms, for a model behind another protocol.

        Raises `RefusedRequestError` if it is malformed, or uses features that the translation lacks.
        """
        if unsupported := [name for name, value in body.items() if value not in _UNTRANSLATED.get(name, (value,))]:
            raise RefusedRequestError(f"not supported by this model, which another protocol serves: {unsupported[0]}")
        choice = body.get("tool_choice")
        choice = choice if isinstance(choice, Mapping) else {"type": choice or "auto"}
        stop = body.get(self.stop) or []
        try:
            tools = [] if choice["type"] == "none" else list(self._functions(body))
            return Prompt(
                messages=convert_to_messages(list(self.messages(body))),
                tools=tools,
                tool_choice=_forced(choice, [tool["function"]["name"] for tool in tools]),
                temperature=body.get("temperature"),
                seed=int(body.get("seed") or 0),
                response_format=self.response_format(body),
                stop=tuple(filter(None, [stop] if isinstance(stop, str) else map(str, stop))),
                one_call=body.get("parallel_tool_calls") is False or bool(choice.get("disable_parallel_tool_use")),
                namespaces=tuple(tool["name"] for tool in list_of(body, "tools") if tool.get("type") == "namespace"),
            )
        except (ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
            raise RefusedRequestError(f"the request is malformed: {reason}") from error

    def _functions(self, body: Json) -> Iterator[Json]:
        for tool in list_of(body, "tools"):
            kind = tool.get("type")
            if self.provider == "openai" and kind not in ("function", "namespace"):
                raise ValueError(f"this model, which another protocol serves, has no tools of type '{kind}'")
            if kind == "namespace":
                inner = [{**each, "name": f"{tool['name']}__{each['name']}"} for each in list_of(tool, "tools")]
                yield from self._functions({"tools": inner})
            else:
                yield self.tool(tool)

    @abstractmethod
    def messages(self, body: Json) -> Iterator[Json]:
        """The transcript of a request, as in chat completions."""

    @abstractmethod
    def tool(self, tool: Json) -> Json:
        """A tool of a request, as in chat completions."""

    @abstractmethod
    def response_format(self, body: Json) -> Json | None:
        """The required form of a reply, as in chat completions."""

    @abstractmethod
    def reply(self, reply: Reply, model: str) -> Json:
        """The body of a reply of a model behind another protocol."""

    @abstractmethod
    def writer(self, model: str, body: Json) -> Writer:
        """The writer of a streamed reply to a request."""

    @abstractmethod
    def said(self, parts: Sequence[Json]) -> Json:
        """The message of a reply as in chat completions, from its body or the events of its stream."""

    @abstractmethod
    def usage(self, part: Json) -> Json | None:
        """The tokens reported by a reply or an event, as LangChain's ``usage_metadata``; None without a report."""

    def error(self, status: int, message: str) -> Json:
        """The body of an error."""
        kind = {402: "insufficient_quota", 429: "rate_limit_exceeded"}.get(status, "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def _forced(choice: Mapping[str, Any], names: Sequence[str]) -> str:
    """The tool that a reply must call, or `ANY_TOOL`; empty for an optional call."""
    kind = choice["type"]
    if kind in ("auto", "none"):
        return ""
    if kind not in ("any", ANY_TOOL, "tool", "function"):
        raise ValueError(
            f"'tool_choice' of type '{kind}' is not supported by this model, which another protocol serves"
        )
    name: str = ANY_TOOL if kind in ("any", ANY_TOOL) else choice.get("name") or choice["function"]["name"]
    if not names or name not in (*names, ANY_TOOL):
        raise ValueError(f"'tool_choice' wants '{name}', and the tools are: {', '.join(names) or 'none'}")
    return name


def referred_images(body: Json) -> int:
    """The number of images by URL in a request.

    Raises `RefusedRequestError` if it refers to other files, whose tokens are unknown, or asks for a dearer cache.
    """
    count = 0
    for block in _blocks(body):
        cache = block.get("cache_control")
        if isinstance(cache, Mapping) and cache.get("ttl") not in (None, "5m"):
            raise RefusedRequestError("'ttl' of a cache must be 5m: others have other prices")
        if any(block.get(name) for name in ("file_id", "file_url")) or "file_id" in (block.get("file") or ()):
            raise RefusedRequestError("files by reference are not supported: their tokens are unknown before the call")
        source = block.get("source")
        if isinstance(source, Mapping) and source.get("type") in ("url", "file"):
            if block.get("type") != "image":
                raise RefusedRequestError("documents by reference are not supported: send their content")
            count += 1
        elif "image_url" in block:
            count += 1
    return count


def _blocks(value: object) -> Iterator[Mapping[str, Any]]:
    """All objects within a request, except the schemas of its tools."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            yield item
            stack += [inner for name, inner in item.items() if name not in ("tools", "response_format", "input_schema")]
        elif isinstance(item, list):
            stack += item


def list_of(body: Json, name: str) -> list[Any]:
    """A list in a request; empty if it is missing."""
    value = body.get(name) or []
    if not isinstance(value, list):
        raise RefusedRequestError(f"'{name}' must be a list")
    return value


def shown_key(headers: Mapping[str, str]) -> str:
    """The API key of a program, in the header of either provider."""
    return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()


async def read_body(
    parts: AsyncIterable[bytes], most: int, too_long: Callable[[int], RefusedRequestError] | None = None
) -> bytes:
    """The body of a request, of at most `most` bytes.

    Raises `RefusedRequestError` if it is longer: that of `too_long`, from the bytes so far.
    """
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > most:
            text = f"the request is longer than {most:,} bytes"
            raise too_long(len(body)) if too_long else RefusedRequestError(text, TOO_LONG)
    return bytes(body)


def parsed(content: str | bytes) -> Json | None:
    """The JSON object in `content`; None for anything else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parsed_request(content: bytes) -> Json:
    """The JSON object of a request.

    Raises `RefusedRequestError` if it is anything else, or has too many parts.
    """
    if sum(map(content.count, (b",", b"[", b"{"))) + content.count(b"\\") // 10 > MOST_PARTS:
        raise RefusedRequestError(f"the request has more than {MOST_PARTS:,} values", TOO_LONG)
    if (body := parsed(content)) is None:
        raise RefusedRequestError("the request is not a JSON object")
    return body


def function_call(call_id: str, name: str, arguments: str) -> Json:
    """A tool call as in chat completions; `arguments` is JSON."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def event(data: Json, name: str = "") -> bytes:
    """An event of a stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def openai_usage(usage: object, prompt: str, reply: str) -> Json | None:
    """OpenAI's token usage as LangChain's; `prompt` and `reply` are the names of the counts."""
    if not isinstance(usage, dict):
        return None
    details = usage.get(f"{prompt}_details") or {}
    return {
        "input_tokens": usage.get(prompt),
        "output_tokens": usage.get(reply),
        "total_tokens": usage.get("total_tokens"),
        "input_token_details": {"cache_read": details.get("cached_tokens")},
        "output_token_details": {"reasoning": (usage.get(f"{reply}_details") or {}).get("reasoning_tokens")},
    }


def report(usage: Usage, prompt: str, reply: str) -> Json:
    """Token usage in OpenAI's format; `prompt` and `reply` are the names of the counts."""
    return {
        prompt: usage.input_tokens,
        reply: usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        f"{prompt}_details": {"cached_tokens": usage.cached_tokens},
        f"{reply}_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
