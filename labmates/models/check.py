"""Checks that the models of a run are reachable, before anything is spent."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Final, Literal

from labmates.errors import UsageError
from labmates.models.endpoints import Endpoint, endpoint_of
from labmates.models.entries import DEFAULT_ACCESS, named_entries
from labmates.models.error_bodies import one_line
from labmates.models.names import is_outside, parse_model
from labmates.models.options import ModelOptions
from labmates.models.providers import check_settings
from labmates.models.structured import check_structured

Ability = Literal["tools", "json_replies"]
"""A capability of a model's server that a run may need."""
_NEEDED: Final[dict[Ability, str]] = {
    "tools": "agents in the lab work by calling tools",
    "json_replies": "structured asks the server to hold replies to a JSON schema",
}
PATIENCE = 5.0
"""Time limit for a server's answer, in seconds."""


async def check_models(names: Iterable[str], options: ModelOptions) -> None:
    """Check that every named model can be called.

    Checks the name, the settings, the persona and the key, and that a server listens at the base URL. A hosted
    service is not contacted; any answer of a server counts, since some don't list their models. Raises `UsageError`
    if a name or the base URL is invalid, a persona's text or a key is missing, a server is unreachable, or a
    plug-in's scripted baseline can't be made.
    """
    from labmates.models.scripted import make_baseline

    servers: dict[str, Endpoint] = {}
    for text in dict.fromkeys(names):
        model = parse_model(text)
        if model.scripted:
            make_baseline(model.name)
            continue
        if is_outside(text):
            continue
        if model.settings.structured:
            check_structured(text)
            check_capabilities([text], ["json_replies"], options)
        if model.settings.persona and options.entries.get(text, DEFAULT_ACCESS).persona_text is None:
            raise UsageError(f"model '{model}': the text of its persona is not known here; write persona=TEXT instead")
        endpoint = endpoint_of(model, options, os.environ)
        if endpoint.hosted:
            if endpoint.key_name and not endpoint.key:
                hint = "; for a server of your own, give its base URL" if model.provider == "openai" else ""
                raise UsageError(f"model '{model}' needs a key: set the environment variable {endpoint.key_name}{hint}")
        else:
            servers[endpoint.address] = endpoint
        check_settings(model, endpoint, options)
    for endpoint in servers.values():
        await _check_server(endpoint.address)


def check_capabilities(names: Iterable[str], needs: Collection[Ability], options: ModelOptions) -> None:
    """Check that no model's entry rules out a capability that a run needs.

    Raises `UsageError` if an entry does.
    """
    for name in names:
        able = options.entries.get(name, DEFAULT_ACCESS).capabilities
        for need in needs:
            if able is not None and getattr(able, need) is False:
                entries = [known for known, entry in named_entries().items() if entry.name == name]
                entry = f" (entry {', '.join(entries)})" if entries else ""
                raise UsageError(
                    f"model '{name}'{entry} has capabilities.{need}: false, but {_NEEDED[need]}; use another model, or "
                    f"correct the entry if its server can: labmates models check {(entries or [name])[0]}"
                )


def check_thinking(name: str, limit: int) -> None:
    """Check that a reply of `limit` tokens (0 for unknown) has room for an answer beside the model's thoughts.

    Raises `UsageError` if it has none.
    """
    budget = parse_model(name).settings.thinking_budget or 0
    if budget >= limit > 0:
        raise UsageError(
            f"model '{name}': thinking_budget {budget:,} leaves no room for an answer in a reply of {limit:,} tokens; "
            "lower it, or raise max_output_tokens"
        )


async def _check_server(address: str) -> None:
    import httpx2

    from labmates.models.clients import ConnectionFault, transport

    try:
        async with (
            httpx2.AsyncClient(timeout=PATIENCE, transport=transport()) as client,
            client.stream("GET", f"{address}/models"),
        ):
            return
    except ConnectionFault as error:
        raise UsageError(f"can't reach {address}: {one_line(str(error))}") from None
    except httpx2.TimeoutException:
        reason = f"no answer within {PATIENCE:g} s"
    except httpx2.ConnectError as error:
        reason = _innermost(error)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = f"it doesn't speak HTTP: {one_line(str(error), 200)}"
    raise UsageError(f"can't reach {address} ({reason}); is the server running?")


def _innermost(error: BaseException) -> str:
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return one_line(str(error), 200)
