"""What a server tells of its limits: the context of a model, and how many requests and tokens it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from labmates.budgets.usage import read_count
from labmates.models.endpoints import Endpoint
from labmates.models.names import ModelName
from labmates.models.provider_quirks import LIMITS
from labmates.models.providers import OPENAI_FAMILY

PATIENCE: Final = 30.0
"""Seconds within which a request has to be answered."""
_CONTEXTS: Final = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
    "n_ctx_train",
)
"""Where servers' lists of models tell the context."""
_RATE: Final = re.compile(r"(?:x|anthropic)-ratelimit-(.+)")
"""Headers that tell rate limits: ``x-ratelimit-limit-requests``, ``anthropic-ratelimit-tokens-limit``."""
_SHORT: Final = 16
"""Output limit of the request whose headers are read, in tokens."""


@dataclass(frozen=True)
class Api:
    """The requests that a server's limits are read from.

    Attributes
    ----------
    models
        URL of the list of models.
    replies
        URL that replies are asked for at.
    limit
        What the protocol calls the limit on a reply.
    headers
        With the key.
    """

    models: str
    replies: str
    limit: str
    headers: Mapping[str, str]


def api_of(model: ModelName, endpoint: Endpoint) -> Api | None:
    """The requests for a model's limits; None where the protocol or the address is unknown."""
    if model.provider == "anthropic":
        address = f"{'https://api.anthropic.com' if endpoint.hosted else endpoint.address}/v1"
        headers = {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}
        return Api(f"{address}/models?limit=1000", f"{address}/messages", "max_tokens", headers)
    if model.provider == "openai" or (model.provider in OPENAI_FAMILY and not endpoint.hosted):
        headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        address = endpoint.address
        return Api(f"{address}/models", f"{address}/chat/completions", LIMITS[endpoint.hosted], headers)
    return None


async def told_context(api: Api, name: str) -> tuple[int | None, str]:
    """The context of a model in tokens, from the server's list of models; or None, and why it is unknown."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=PATIENCE, headers=api.headers) as client:
            listed = (await client.get(api.models)).json()["data"]
        entry: dict[str, Any] = next(one for one in listed if one.get("id") == name)
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return None, "the server has no list of models"
    except StopIteration:
        return None, f"the server's list of models does not have '{name}'"
    details = {**entry, **(entry["meta"] if isinstance(entry.get("meta"), dict) else {})}
    context = next((count for key in _CONTEXTS if (count := read_count(details.get(key)))), None)
    return context, "" if context else "the server does not tell the context"


async def told_rates(api: Api, name: str) -> dict[str, int]:
    """Rate limits of a server, mostly per minute, by what is limited (``requests``, ``input tokens``).

    It is read from the headers of one short reply; empty if they don't tell.
    """
    import httpx2

    body = {"model": name, "messages": [{"role": "user", "content": "Hello"}], api.limit: _SHORT}
    try:
        async with (
            httpx2.AsyncClient(timeout=PATIENCE, headers=api.headers) as client,
            client.stream("POST", api.replies, json=body) as answer,
        ):
            return _rates(answer.headers)
    except httpx2.HTTPError:
        return {}


def _rates(headers: Mapping[str, str]) -> dict[str, int]:
    rates = {}
    for name, value in headers.items():
        words = found[1].split("-") if (found := _RATE.fullmatch(name.lower())) else []
        if "limit" in words and value.strip().isdecimal():
            words.remove("limit")
            rates[" ".join(words)] = int(value)
    return rates
