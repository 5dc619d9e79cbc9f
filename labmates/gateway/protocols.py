"""The HTTP protocols that the gateway speaks: what a request may cost, and what a reply has used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from labmates.errors import LabmatesError

Json = dict[str, Any]

IMAGE_TOKENS = 10_000
"""More tokens than any provider counts for one picture, whose address may be short."""
_OWN_TOOLS = ("function", "custom")
_UNBOUNDED = (
    *("previous_response_id", "conversation", "background", "prompt", "container", "mcp_servers"),  # kept or run there
    *("audio", "prediction"),  # billed apart from the tokens of the reply
)


class RefusedRequestError(LabmatesError):
    """A request whose cost has no bound, or that is malformed."""


@dataclass(frozen=True)
class Protocol(ABC):
    """One endpoint of a provider's API.

    Attributes
    ----------
    name
        For records.
    path
        Its path, at the gateway and at the provider.
    provider
        The provider of the models that are asked by it.
    limits
        Names of the limit on a reply's tokens, the current one first.
    """

    name: str
    path: str
    provider: str
    limits: tuple[str, ...]

    CHOICES: ClassVar[int] = 128

    def check(self, body: Json) -> None:
        """Check that the cost of a request has a bound.

        Raises
        ------
        RefusedRequestError
            If it refers to text that the provider keeps or fetches, or asks for what is billed apart from tokens.
        """
        for name in _UNBOUNDED:
            if body.get(name):
                raise RefusedRequestError(f"'{name}' is not supported: its cost is unknown before the call")
        if body.get("service_tier") not in (None, "auto", "default", "flex", "standard_only"):
            raise RefusedRequestError("'service_tier' must be auto, default or flex: other tiers have other prices")
        if "web_search_options" in body:
            raise RefusedRequestError("'web_search_options' is not supported: searches are billed apart from tokens")
        for tool in _list(body, "tools"):
            kind = tool.get("type") if isinstance(tool, Mapping) else None
            if not (kind in _OWN_TOOLS or (self.provider == "anthropic" and kind is None)):
                raise RefusedRequestError(f"tool of type '{kind}' is not supported: the provider bills it apart")

    def choices(self, body: Json) -> int:
        """The number of replies that a request asks for."""
        number = body.get("n", 1)
        if not isinstance(number, int) or not 1 <= number <= self.CHOICES:
            raise RefusedRequestError(f"'n' must be a number from 1 to {self.CHOICES}")
        return number

    def wanted(self, body: Json) -> int | None:
        """The limit on the reply that a request has; None without one."""
        given = [body[name] for name in self.limits if body.get(name) is not None]
        if any(isinstance(limit, bool) or not isinstance(limit, int) or limit < 1 for limit in given):
            raise RefusedRequestError(f"'{self.limits[0]}' must be a number of tokens, at least 1")
        return min(given, default=None)

    def limited(self, body: Json, model: str, limit: int) -> Json:
        """The request as it is sent to the provider: its model's own name, and a limit on the reply."""
        sent = {**body, "model": model}
        present = [name for name in self.limits if body.get(name) is not None] or [self.limits[0]]
        sent.update(dict.fromkeys(present, limit))
        if self.hides_usage(body):
            sent["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
        return sent

    def hides_usage(self, body: Json) -> bool:
        """Whether the program did not ask for the usage that the gateway needs at the end of a stream."""
        if self.name != "chat" or not body.get("stream"):
            return False
        return not (body.get("stream_options") or {}).get("include_usage")

    @abstractmethod
    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or an event of a stream, as LangChain's ``usage_metadata``; None if it has none."""

    def error(self, status: int, message: str) -> Json:
        """The body of an error."""
        kind = {402: "insufficient_quota", 429: "rate_limit_exceeded"}.get(status, "invalid_request_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


class Chat(Protocol):
    """OpenAI's chat completions."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or in the last event of a stream."""
        return _metadata(part.get("usage"), "prompt_tokens", "completion_tokens")


class Responses(Protocol):
    """OpenAI's responses."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply or in the event that ends a stream."""
        response = part.get("response", part)
        return _metadata(response.get("usage"), "input_tokens", "output_tokens") if isinstance(response, dict) else None


class Messages(Protocol):
    """Anthropic's messages."""

    def usage(self, part: Json) -> Json | None:
        """The tokens in a reply, or in the events that begin and end a stream."""
        message = part.get("message", part)
        usage = message.get("usage") if isinstance(message, dict) else None
        if not isinstance(usage, dict):
            return None
        read, written = (usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
        found: Json = {"output_tokens": usage.get("output_tokens")}
        if isinstance(count := usage.get("input_tokens"), int):
            found["input_tokens"] = count + read + written
            found["input_token_details"] = {"cache_read": read, "cache_creation": written}
        return found

    def error(self, status: int, message: str) -> Json:
        """The body of an error."""
        kind = {402: "billing_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        return {"type": "error", "error": {"type": kind.get(status, "invalid_request_error"), "message": message}}


CHAT = Chat("chat", "/v1/chat/completions", "openai", ("max_completion_tokens", "max_tokens"))
RESPONSES = Responses("responses", "/v1/responses", "openai", ("max_output_tokens",))
MESSAGES = Messages("messages", "/v1/messages", "anthropic", ("max_tokens",))
PROTOCOLS: tuple[Protocol, ...] = (CHAT, RESPONSES, MESSAGES)


def referred_images(body: Json) -> int:
    """The number of pictures that a request names by their address.

    Raises
    ------
    RefusedRequestError
        If it refers to other files, whose tokens are unknown.
    """
    count = 0
    for block in _blocks(body):
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
    """All objects within a request but for the schemas of its tools."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            yield item
            stack += [inner for name, inner in item.items() if name not in ("tools", "response_format", "input_schema")]
        elif isinstance(item, list):
            stack += item


def _metadata(usage: object, prompt: str, reply: str) -> Json | None:
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


def _list(body: Json, name: str) -> list[Any]:
    value = body.get(name) or []
    if not isinstance(value, list):
        raise RefusedRequestError(f"'{name}' must be a list")
    return value
