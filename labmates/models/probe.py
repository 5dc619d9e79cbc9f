"""Asking a model's server what it can do, with a few short calls."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, Final

from langchain_core.messages import HumanMessage

from labmates.models.check import check_models
from labmates.models.endpoints import endpoint_of
from labmates.models.entries import DEFAULT_ACCESS
from labmates.models.errors import ModelCallError
from labmates.models.hub import ModelHub
from labmates.models.names import ModelName, parse_model
from labmates.models.options import ModelOptions
from labmates.models.providers import OPENAI_FAMILY
from labmates.models.reply import Reply
from labmates.models.server_limits import api_of, told_context, told_rates

TOKENS: Final = 2048
"""Output limit of each call: models that reason need some."""
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "note_number",
        "description": "Note a number.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
}
_LONG: Final = "\n".join(f"Row {n}: sample {n * 37 % 101} has {n * 53 % 97} counts." for n in range(200))
"""About 3,000 tokens: providers cache prefixes from 1,024 on."""


@dataclass(frozen=True)
class Probe:
    """What was found about one ability of a model's server.

    Attributes
    ----------
    able
        Whether it has the ability; None where the server doesn't tell, or could not be asked.
    """

    what: str
    able: bool | None
    text: str


async def probe(name: str, options: ModelOptions) -> AsyncIterator[Probe]:
    """Ask a model's server and yield what it can do (answer, tools, JSON, usage, cache), and its limits.

    Parameters
    ----------
    name
        The model's full name.

    Raises
    ------
    UsageError
        If the model can't be asked as it is named.
    """
    await check_models([name], options)
    model = parse_model(name)
    async with ModelHub(options.model_copy(update={"max_retries": 0})) as hub:
        try:
            reply = await _ask(hub, name, "Answer with the one word: ready")
        except ModelCallError as error:
            yield Probe("answers", False, str(error))
            return
        said = f"{reply.text[:60]!r} in {reply.seconds:.1f} s"
        refused = f"; refused at first: {'; '.join(reply.errors)}" if reply.errors else ""
        yield Probe("answers", bool(reply.text), f"{said}{refused}" if reply.text else "the reply is empty")
        yield _usage(reply)
        reasons = bool(reply.reasoning or reply.usage.reasoning_tokens)
        yield Probe("reasoning", reasons, f"{reply.usage.reasoning_tokens} tokens" if reasons else "none seen")
        yield await _probed("tools", _tools(hub, name))
        yield await _json(model, options)
        yield await _probed("cache", _cache(hub, name))
    yield await _limits(model, options)


async def _ask(hub: ModelHub, name: str, prompt: str, **more: Any) -> Reply:
    return await hub.call(name, [HumanMessage(prompt)], seed=1, max_output_tokens=TOKENS, **more)


async def _probed(what: str, found: Any) -> Probe:
    try:
        able, text = await found
    except ModelCallError as error:
        return Probe(what, False, str(error))
    return Probe(what, able, text)


def _usage(reply: Reply) -> Probe:
    usage = reply.usage
    if usage.estimated:
        return Probe("usage", False, "the server reports no token counts; they are estimated from the text")
    return Probe("usage", True, f"{usage.input_tokens} + {usage.output_tokens} tokens")


async def _tools(hub: ModelHub, name: str) -> tuple[bool, str]:
    reply = await _ask(hub, name, "Call the tool note_number with the number 7.", tools=[_TOOL])
    if not reply.tool_calls:
        return False, f"no tool call; it answered {reply.text[:60]!r} (teams of the lab need tools)"
    call = reply.tool_calls[0]
    right = call.name == "note_number" and call.arguments == {"number": 7}
    return right, f"{call.name}({json.dumps(call.arguments)[:60]})"


async def _json(model: ModelName, options: ModelOptions) -> Probe:
    if model.provider != "openai" and model.provider not in OPENAI_FAMILY:
        return Probe("json", None, f"not asked: {model.provider} has no response_format here")
    settings = model.settings.model_copy(update={"response_format": {"type": "json_object"}})
    name = str(replace(model, settings=settings))
    access = options.entries.get(str(model), DEFAULT_ACCESS)
    changes = {"max_retries": 0, "entries": {**options.entries, name: access}}
    async with ModelHub(options.model_copy(update=changes)) as hub:
        return await _probed("json", _object(hub, name))


async def _object(hub: ModelHub, name: str) -> tuple[bool, str]:
    reply = await _ask(hub, name, "List three colours as a JSON object, by number.")
    try:
        right = isinstance(json.loads(reply.text), dict)
    except ValueError:
        right = False
    return right, "one JSON object" if right else f"response_format is ignored; it answered {reply.text[:60]!r}"


async def _cache(hub: ModelHub, name: str) -> tuple[bool | None, str]:
    replies = [await _ask(hub, name, f"{_LONG}\nAnswer with the one word: {word}") for word in ("first", "second")]
    if replies[-1].usage.estimated:
        return None, "the server reports no token counts"
    cached = replies[-1].usage.cached_tokens
    told = f"{cached:,} of {replies[-1].usage.input_tokens:,} input tokens of a repeated prompt"
    return (
        cached > 0,
        f"{told} came from the cache" if cached else "no cached tokens are reported for a repeated prompt",
    )


async def _limits(model: ModelName, options: ModelOptions) -> Probe:
    """The rate limits that the server reports."""
    api = api_of(model, endpoint_of(model, options, os.environ))
    if api is None:
        return Probe("limits", None, f"not asked: where {model.provider} tells them is not known here")
    context, silence = await told_context(api, model.name)
    rates = await told_rates(api, model.name)
    allowed = ", ".join(f"{count:,} {what}" for what, count in rates.items())
    told = [
        f"a context of {context:,} tokens" if context else silence,
        f"rate limits: {allowed}" if rates else "no rate limits are told",
    ]
    return Probe("limits", True if context or rates else None, "; ".join(told))
