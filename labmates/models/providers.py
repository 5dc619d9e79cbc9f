"""The providers' chat models."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from labmates.budgets.tokens import MOST_TOKENS, limited
from labmates.errors import UsageError
from labmates.models.endpoints import NO_KEY, Endpoint
from labmates.models.error_bodies import one_line
from labmates.models.names import GIVEN, PLUGINS, PROVIDERS, ModelName, has_own_chat
from labmates.models.options import ModelOptions
from labmates.models.redact import Redactor
from labmates.models.settings import NO_SETTINGS

if TYPE_CHECKING:
    import httpx2

BEDROCK = ("bedrock", "bedrock_converse")

_FREE_OF_CHOICE = ("ollama",)
"""Providers whose LangChain class silently drops `tool_choice`."""
LIMIT_FIELDS = {"ollama": "num_predict"}
"""The provider class's name of the output limit, if not ``max_tokens``."""

_LEAST_THINKING = 1024
"""Anthropic's least thinking budget."""
_NOT_SENT = {"temperature", "max_output_tokens", "context_tokens", "variant", "seed", "structured", "persona"}
"""Settings that are sent with each call, or not at all."""


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
    model: ModelName, endpoint: Endpoint, options: ModelOptions, redact: Redactor, **more: Any
) -> BaseChatModel:
    """Build a chat model from the provider's LangChain class, without the retries of that class.

    `more` are further settings of the class. Raises `UsageError` if the class rejects the settings (most likely a
    missing key or region).
    """
    make, takes = _maker(model)
    wanted: dict[str, Any] = {"timeout": options.call_timeout, "max_retries": 0, "disable_streaming": True}
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
    if has_own_chat(model.provider):
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
