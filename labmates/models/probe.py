"""Probes of a model's server: capabilities, tested by short calls, and the reported context."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import HumanMessage, ToolMessage

from labmates.budgets.money import show_dollars
from labmates.budgets.tokens import read_count
from labmates.errors import UsageError
from labmates.models.attached import attached_to
from labmates.models.check import check_models
from labmates.models.endpoints import Endpoint, endpoint_of
from labmates.models.errors import ModelCallError
from labmates.models.hub import ModelHub
from labmates.models.names import ModelName, has_own_chat, is_outside, parse_model
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply

TOKENS: Final = 4096
"""Output limit of each call in tokens, with room for reasoning."""
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "note_number",
        "description": "Note a number.",
        "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
}
_ORDER: Final = "Call the tool note_number with the number 7."
_LONG: Final = "\n".join(f"Row {n}: sample {n * 37 % 101} has {n * 53 % 97} counts." for n in range(200))
"""About 3,000 tokens; providers cache prefixes from 1,024 on."""


@dataclass(frozen=True)
class Probe:
    """The result of probing a capability of a model's server; `able` is None if unknown."""

    what: str
    able: bool | None
    text: str


async def probe(name: str, options: ModelOptions) -> AsyncIterator[Probe]:
    """Call a model's server and yield its capabilities (answers, tools, tool loops, JSON, usage, cache, context).

    Raises `UsageError` if the model can't be called.
    """
    if is_outside(name):
        raise UsageError(f"'{name}' is no model that can be checked: a person, or the record of a run, replies")
    await check_models([name], options)
    model = parse_model(name)
    async with ModelHub(options.model_copy(update={"max_retries": 0})) as hub:
        try:
            reply = await _ask(hub, name, "Answer with the one word: ready")
        except ModelCallError as error:
            yield Probe("answers", False, str(error))
            return
        answer = f"{reply.text[:60]!r} in {reply.seconds:.1f} s"
        refused = f"; refused at first: {'; '.join(reply.errors)}" if reply.errors else ""
        yield Probe("answers", bool(reply.text), f"{answer}{refused}" if reply.text else "the reply is empty")
        yield _usage(reply)
        reasons = bool(reply.reasoning or reply.usage.reasoning_tokens)
        yield Probe("reasoning", reasons, f"{reply.usage.reasoning_tokens} tokens" if reasons else "none seen")
        called: list[Reply] = []
        yield await _probed("tools", _tools(hub, name, called))
        if called:
            yield await _probed("loop", _loop(hub, name, called[0], asks_for_thoughts(model) or reasons))
        yield await _probed("json", _json(hub, model))
        yield await _probed("cache", _cache(hub, name))
    yield await _context(model, options)


async def _ask(hub: ModelHub, name: str, prompt: str, **more: Any) -> Reply:
    return await hub.call(name, [HumanMessage(prompt)], seed=1, max_output_tokens=TOKENS, **more)


async def _probed(what: str, result: Any) -> Probe:
    try:
        able, text = await result
    except ModelCallError as error:
        return Probe(what, False, str(error))
    return Probe(what, able, text)


def _usage(reply: Reply) -> Probe:
    usage = reply.usage
    if usage.estimated:
        return Probe("usage", False, "the server reports no token counts; they are estimated from the text")
    cost = f", reported cost {show_dollars(reply.bill or 0)}" if reply.bill_from == "server" else ""
    return Probe("usage", True, f"{usage.input_tokens} + {usage.output_tokens} tokens{cost}")


async def _tools(hub: ModelHub, name: str, called: list[Reply]) -> tuple[bool, str]:
    """Whether the model calls a tool as asked; a reply with a call goes into `called`."""
    reply = await _ask(hub, name, _ORDER, tools=[_TOOL])
    if not reply.tool_calls:
        return False, f"no tool call; it answered {reply.text[:60]!r} (teams of the lab need tools)"
    called.append(reply)
    call = reply.tool_calls[0]
    right = call.name == "note_number" and call.arguments == {"number": 7}
    return right, "; ".join([f"{call.name}({json.dumps(call.arguments)[:60]})", *reply.notes])


async def _loop(hub: ModelHub, name: str, called: Reply, thinks: bool) -> tuple[bool, str]:
    """Whether a tool loop continues: servers of models that think want the thoughts of its replies back."""
    attached = attached_to(called.message)
    answers = [ToolMessage("noted", tool_call_id=call.id) for call in called.tool_calls]
    try:
        asked = [HumanMessage(_ORDER), called.message, *answers]
        reply = await hub.call(name, asked, seed=1, max_output_tokens=TOKENS, tools=[_TOOL])
    except ModelCallError as error:
        sent = "with" if attached else "without"
        return False, f"the second call of a tool loop, {sent} the thoughts of the first reply, failed: {error}"
    if reply.errors:
        return True, f"2 calls; the second was repeated without what the server refused: {'; '.join(reply.errors)}"
    if attached:
        return True, "2 calls; the thoughts of the first reply went back to the server"
    missing = " (the model is to think, and its server sent nothing to give back)" if thinks else ""
    return True, f"2 calls, without thoughts{missing}"


def asks_for_thoughts(model: ModelName) -> bool:
    """Whether a model's settings ask it to think."""
    settings = model.settings
    more = {**(settings.extra_body or {}), **(settings.chat_template_kwargs or {})}
    effort = settings.reasoning_effort not in (None, "none")
    return bool(effort or settings.thinking_budget or more.get("enable_thinking"))


async def _json(hub: ModelHub, model: ModelName) -> tuple[bool | None, str]:
    if not has_own_chat(model.provider):
        return None, f"not tested: {model.provider} has no response_format here"
    prompt = "List three colours as a JSON object, by number."
    reply = await _ask(hub, str(model), prompt, response_format={"type": "json_object"})
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
    text = f"{cached:,} of {replies[-1].usage.input_tokens:,} input tokens of a repeated prompt came from the cache"
    silence = "no cached tokens are reported for a repeated prompt"
    return cached > 0, "; ".join([text if cached else silence, *replies[-1].notes])


async def _context(model: ModelName, options: ModelOptions) -> Probe:
    endpoint = endpoint_of(model, options, os.environ)
    if endpoint.weights is not None:
        return Probe("context", True, f"{endpoint.weights.context:,} tokens")
    listing = _listing(model, endpoint)
    if listing is None:
        return Probe("context", None, f"not tested: labmates can't read the models of {model.provider}")
    context, silence = await _reported_context(*listing, model.name)
    return Probe("context", True, f"{context:,} tokens") if context else Probe("context", None, silence)


PATIENCE: Final = 30.0
"""Time limit of a request, in seconds."""
_CONTEXTS: Final = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
    "n_ctx_train",
)
"""Fields for the context in servers' lists of models."""


def _listing(model: ModelName, endpoint: Endpoint) -> tuple[str, Mapping[str, str]] | None:
    """The URL of a server's list of models, and the headers with the key; None if unknown."""
    if model.provider == "anthropic":
        address = "https://api.anthropic.com" if endpoint.hosted else endpoint.address
        return f"{address}/v1/models?limit=1000", {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}
    if has_own_chat(model.provider):
        headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        return f"{endpoint.address}/models", headers
    return None


async def _reported_context(url: str, headers: Mapping[str, str], name: str) -> tuple[int | None, str]:
    """The context of a model in tokens, from the server's list of models; else None and the reason."""
    import httpx2

    from labmates.models.clients import transport

    try:
        async with httpx2.AsyncClient(timeout=PATIENCE, headers=headers, transport=transport()) as client:
            listed = (await client.get(url)).json()["data"]
        entry: dict[str, Any] = next(model for model in listed if model.get("id") == name)
    except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return None, "the server has no list of models"
    except StopIteration:
        return None, f"the server's list of models does not have '{name}'"
    details = {**entry, **(entry["meta"] if isinstance(entry.get("meta"), dict) else {})}
    context = next((count for key in _CONTEXTS if (count := read_count(details.get(key)))), None)
    return context, "" if context else "the server does not report the context"
