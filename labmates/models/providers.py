"""The providers' chat models."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError

from labmates.budgets.tokens import text_of
from labmates.budgets.usage import MOST_TOKENS, limited
from labmates.errors import UsageError
from labmates.models.attempt import on_the_wire
from labmates.models.connection import ANY_TOOL, Request, Send
from labmates.models.endpoints import NO_KEY, Endpoint
from labmates.models.error_bodies import one_line
from labmates.models.gguf import GGUF
from labmates.models.given import GIVEN
from labmates.models.names import PLUGINS, PROVIDERS, ModelName
from labmates.models.options import ModelOptions
from labmates.models.prefix import CACHE_FIELD, Marker
from labmates.models.redact import Redactor
from labmates.models.settings import NO_SETTINGS
from labmates.models.watching import LISTENER, Listener, Piece

if TYPE_CHECKING:
    import httpx2

OPENAI_FAMILY = {"azure_openai", "deepseek", "together", "upstage", "xai"}
"""Providers whose classes derive from ChatOpenAI: they take OpenAI's parameters with each call, and our HTTP client."""
OWN_CHAT = ("openai", GGUF)
"""Providers that labmates calls by its own chat model."""
BATCH_PROVIDERS = ("openai", "anthropic")
"""Providers whose batch API `labmates.models.batches` supports."""
BEDROCK = ("bedrock", "bedrock_converse")

_FREE_OF_CHOICE = ("ollama",)
"""Providers whose LangChain class silently drops `tool_choice`."""
LIMIT_FIELDS = {"ollama": "num_predict"}
"""The provider class's name of the output limit, if not ``max_tokens``."""

_LEAST_THINKING = 1024
"""Anthropic's least thinking budget."""
_NOT_SENT = {"temperature", "max_output_tokens", "context_tokens", "variant", "seed", "structured"}
"""Settings that are sent with each call, or not at all."""


def per_call(chat: BaseChatModel, body: Mapping[str, Any] | None = None, *, may_stream: bool = False) -> Send:
    """The sender for a chat model that takes all parameters with each call; `body` is added to every request.

    With `may_stream`, a watched reply is streamed; see `labmates.models.watching`.
    """
    streaming = chat.model_copy(update={"disable_streaming": False}) if may_stream else chat

    async def send(request: Request, arguments: dict[str, Any]) -> BaseMessage:
        if request.tools:
            arguments = {**arguments, "tools": list(request.tools)}
        if choice := request.tool_choice:
            named = {"type": "function", "function": {"name": choice}}
            arguments = {**arguments, "tool_choice": choice if choice == ANY_TOOL else named}
        if request.response_format is not None:
            held = {"response_format": dict(request.response_format)}
            # LangChain's classes would parse the reply by it and raise if it doesn't fit.
            arguments = {**arguments, **held} if body is None else {**arguments, "extra_body": {**body, **held}}
        elif body:
            arguments = {**arguments, "extra_body": dict(body)}
        messages = list(request.messages)
        if may_stream and (listener := LISTENER.get()) is not None:
            return await _watched(streaming, messages, request.config, listener, stream_usage=True, **arguments)
        return await chat.ainvoke(messages, request.config, **arguments)

    return send


def per_instance(
    build: Callable[[int, float | None], BaseChatModel],
    marks: Marker | None = None,
    *,
    is_watched: bool = False,
    may_stream: bool = False,
) -> Send:
    """The sender for chat models whose limit and temperature belong to the instance.

    Providers' names for these parameters differ in calls, but not in constructors: each pair of values gets an
    instance, and the last few instances are cached. No seed is sent. `marks` adds cache marks unless the server refused
    them. `is_watched` tells that the HTTP client is ours and reports when a request is on the wire. With `may_stream`,
    a watched reply is streamed; see `labmates.models.watching`.
    """
    built = lru_cache(maxsize=16)(build)

    async def send(request: Request, arguments: dict[str, Any]) -> BaseMessage:
        chat = built(request.max_output_tokens, arguments.get("temperature"))
        listener = LISTENER.get() if may_stream else None
        if listener is not None and chat.disable_streaming is True:
            chat = chat.model_copy(update={"disable_streaming": False})
        # LangChain and OpenAI have different words for any tool.
        choice = {"tool_choice": request.tool_choice.replace(ANY_TOOL, "any")} if request.tool_choice else {}
        asked = chat.bind_tools(list(request.tools), **choice) if request.tools else chat
        messages = list(request.messages)
        if not is_watched:
            on_the_wire()
        if marks is not None and arguments.get(CACHE_FIELD, True):
            messages = marks(messages)
        if listener is not None:
            return await _watched(asked, messages, request.config, listener)
        return await asked.ainvoke(messages, request.config)

    return send


async def _watched(
    asked: Runnable[Any, Any],
    messages: list[BaseMessage],
    config: RunnableConfig,
    listener: Listener,
    **arguments: Any,
) -> BaseMessage:
    listener(None)
    whole: AIMessageChunk | None = None
    calls: dict[Any, int] = {}
    async for chunk in asked.astream(messages, config, **arguments):
        whole = chunk if whole is None else whole + chunk
        if text := text_of(chunk.content):
            listener(Piece(text))
        for call in chunk.tool_call_chunks:
            number = calls.setdefault(call.get("index"), len(calls))
            listener(Piece(call["args"] or "", "call", number, call["id"] or "", call["name"] or ""))
    assert whole is not None
    return message_chunk_to_message(whole)


def takes_tool_choice(model: ModelName) -> bool:
    """Whether a model supports forced tool calls."""
    return not model.scripted and model.provider not in _FREE_OF_CHOICE


def request_body(model: ModelName) -> dict[str, Any]:
    """The members that a model's settings add to each request in OpenAI's protocol.

    Raises `UsageError` if the protocol lacks a setting.
    """
    settings = model.settings.given()
    if "thinking_budget" in settings:
        raise UsageError(
            f"model '{model}': OpenAI's protocol has no thinking_budget; use the server's name for it, for instance "
            "extra_body.thinking_budget=1024 or chat_template_kwargs.thinking_budget=1024"
        )
    extra: dict[str, Any] = settings.pop("extra_body", {})
    return {name: value for name, value in settings.items() if name not in _NOT_SENT} | extra


def provider_chat(
    model: ModelName,
    endpoint: Endpoint,
    options: ModelOptions,
    redact: Redactor,
    *,
    client: httpx2.AsyncClient | None = None,
    **more: Any,
) -> BaseChatModel:
    """Build a provider's chat model, without its own retries; any provider except openai, object and scripted.

    `client` is our HTTP client for the OpenAI family, bound to the running event loop; settings then go with each call.
    `more` are further settings of the provider's class. Raises `UsageError` if the provider's class rejects the
    settings (most likely a missing key or region).
    """
    make, takes = _maker(model)
    wanted: dict[str, Any] = {"timeout": options.call_timeout, "max_retries": 0, "disable_streaming": True}
    if client is not None:
        from labmates.models.clients import patience, synchronous_client

        clients = {"http_async_client": client, "http_client": synchronous_client()}
        wanted |= {"timeout": patience(options), **clients}
    if model.provider not in PROVIDERS:
        if not takes("max_tokens"):
            more.pop("max_tokens", None)  # A plug-in may lack output limits.
        _required(more, takes, model)
    values = {name: value for name, value in wanted.items() if takes(name)} | more
    if not endpoint.hosted:
        access = {"base_url": endpoint.address, "api_key": endpoint.key or NO_KEY}
        if model.provider in BEDROCK and not endpoint.key:
            del access["api_key"]  # Requests are signed with AWS credentials.
        elif model.provider in BEDROCK and not endpoint.address.startswith("https:"):
            raise UsageError(f"model '{model}': a key is sent to {endpoint.address} over https alone; leave it out")
        values |= _required(access, takes, model)
    elif endpoint.key and takes("api_key"):
        values["api_key"] = endpoint.key
    if client is None:
        values |= _required(_settings(model, more), takes, model)
    try:
        return make(**values)
    except ValidationError as error:  # Its own text quotes the settings.
        reason = "; ".join(details["msg"] for details in error.errors())
    except Exception as error:
        reason = str(error)
    raise UsageError(f"model '{model}' can't be set up: {one_line(redact(reason), 300)}")


def use_client(chat: Any, client: httpx2.AsyncClient, options: ModelOptions) -> None:
    """Let LangChain's chat model for Anthropic use our HTTP client.

    It has no field for one, and shares its own between event loops, which fails in the second.
    """
    from labmates.models.clients import patience

    vars(chat)["_async_client"] = chat._async_client.with_options(http_client=client, timeout=patience(options))


def check_settings(model: ModelName, endpoint: Endpoint, options: ModelOptions) -> None:
    """Check that a model's provider takes its settings. Raises `UsageError` if it rejects one."""
    if model.provider in (*OWN_CHAT, *OPENAI_FAMILY):
        request_body(model)
    elif model.provider != GIVEN and (model.settings != NO_SETTINGS or not endpoint.hosted):
        provider_chat(model, endpoint, options, Redactor.from_environment(os.environ, endpoint.key))


def _maker(model: ModelName) -> tuple[Callable[..., BaseChatModel], Callable[[str], bool]]:
    """The constructor of a provider's chat models, and a test of whether it takes a keyword."""
    if model.provider in PROVIDERS:
        from langchain.chat_models import init_chat_model
        from langchain.chat_models.base import _BUILTIN_PROVIDERS

        module, name, _ = _BUILTIN_PROVIDERS[model.provider]
        kind = getattr(import_module(module), name)
        known = {*kind.model_fields, *(field.alias for field in kind.model_fields.values())}
        if model.provider in OPENAI_FAMILY:
            from labmates.models.openai_fields import keeping_fields

            return partial(keeping_fields(kind), model=model.name), known.__contains__
        return partial(init_chat_model, model.name, model_provider=model.provider), known.__contains__
    made: Any = PLUGINS.get(model.provider)
    if isinstance(made, type) and issubclass(made, BaseChatModel):
        known = {*made.model_fields, *(field.alias for field in made.model_fields.values())}
        return partial(made, model=model.name), known.__contains__
    parameters = inspect.signature(made).parameters.values()
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    names = {parameter.name for parameter in parameters}

    def make(**values: Any) -> BaseChatModel:
        with PLUGINS.guarded(model.provider, "can't make a model"):
            chat: BaseChatModel = made(model=model.name, **values)
        return chat

    return make, lambda name: any_name or name in names


def _settings(model: ModelName, more: Mapping[str, Any]) -> dict[str, Any]:
    """A model's settings under the names of its provider's class, beside the call's output limit in `more`."""
    settings = {name: value for name, value in model.settings.given().items() if name not in _NOT_SENT - {"seed"}}
    if (budget := settings.get("thinking_budget")) is not None and model.provider in ("anthropic", *BEDROCK):
        del settings["thinking_budget"]
        # The limit of a reply may be lowered for want of funds or context, and must be above the budget.
        limit = more.get("max_tokens", MOST_TOKENS)
        budget = budget if budget < limit else limit * 3 // 4
        budget = budget if budget >= _LEAST_THINKING else 0
        thinking = {"type": "enabled", "budget_tokens": budget} if budget else {"type": "disabled"}
        if model.provider == "anthropic":
            settings["thinking"] = thinking
        else:
            settings["extra_body"] = {"thinking": thinking, **settings.get("extra_body", {})}
    if "extra_body" in settings and model.provider == "anthropic":
        settings["model_kwargs"] = {"extra_body": settings.pop("extra_body")}
    if "extra_body" in settings and model.provider in BEDROCK:
        settings["additional_model_request_fields"] = settings.pop("extra_body")
    return settings


def _required(values: dict[str, Any], takes: Callable[[str], bool], model: ModelName) -> dict[str, Any]:
    for name in values:
        if not takes(name):
            raise UsageError(f"model '{model}': the provider {model.provider} takes no {name}; leave it out")
    return values


def prepared(chat: BaseChatModel, limit: int, temperature: float | None) -> BaseChatModel:
    """The chat model with this output limit (if its class has one) and temperature.

    Raises `UsageError` if its class takes no temperature.
    """
    chat = limited(chat, limit)
    if temperature is None:
        return chat
    if "temperature" not in type(chat).model_fields:
        raise UsageError(f"a {type(chat).__name__} takes no temperature")
    return chat.model_copy(update={"temperature": temperature})
