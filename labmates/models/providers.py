"""The chat models of providers, ready to be sent requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from labmates.errors import UsageError
from labmates.models.bodies import one_line
from labmates.models.connection import Request, Send
from labmates.models.names import ModelName
from labmates.models.options import ModelOptions
from labmates.models.redact import Redactor

if TYPE_CHECKING:
    import httpx2

OPENAI_FAMILY = {"azure_openai", "deepseek", "together", "upstage", "xai"}
"""Providers whose chat models derive from LangChain's for OpenAI: they take OpenAI's parameters with each
call, and our HTTP client."""

LIMIT_FIELDS = {"ollama": "num_predict"}
"""What a provider's class calls the limit on a reply, where it isn't ``max_tokens``."""


def per_call(chat: BaseChatModel) -> Send:
    """Return how to send requests to a chat model that takes all parameters with each call."""

    async def send(request: Request, arguments: dict[str, Any]) -> BaseMessage:
        if request.tools:
            arguments = {**arguments, "tools": list(request.tools)}
        return await chat.ainvoke(list(request.messages), request.config, **arguments)

    return send


def per_instance(build: Callable[[int, float | None], BaseChatModel]) -> Send:
    """Return how to send requests where limit and temperature belong to the chat model's instance.

    Providers name these parameters differently in calls, but alike when the model is built; so there is one
    instance for each pair of them, of which the last few are kept. No seed is sent.
    """
    built = lru_cache(maxsize=16)(build)

    async def send(request: Request, arguments: dict[str, Any]) -> BaseMessage:
        chat = built(request.max_output_tokens, arguments.get("temperature"))
        asked = chat.bind_tools(list(request.tools)) if request.tools else chat
        return await asked.ainvoke(list(request.messages), request.config)

    return send


def provider_chat(
    model: ModelName, options: ModelOptions, redact: Redactor, *, client: httpx2.AsyncClient | None = None, **more: Any
) -> BaseChatModel:
    """Build a provider's chat model, without retries of its own.

    Parameters
    ----------
    model
        Any provider but ``openai`` and ``scripted``.
    options
        For the time limit.
    redact
        Takes the secrets out of errors.
    client
        For the OpenAI family: our HTTP client, which belongs to the running event loop.
    **more
        Further settings of the provider's class.

    Raises
    ------
    UsageError
        If the provider's class does not take the settings (a missing key or region, most likely).
    """
    from langchain.chat_models import init_chat_model

    from labmates.models.clients import synchronous_client

    settings = {"timeout": options.call_timeout, "max_retries": 0, "disable_streaming": True, **more}
    if client is not None:
        settings |= {"http_async_client": client, "http_client": synchronous_client()}
    try:
        chat: BaseChatModel = init_chat_model(model.name, model_provider=model.provider, **settings)
    except ValidationError as error:  # Its own text quotes the settings.
        reason = "; ".join(details["msg"] for details in error.errors())
    except Exception as error:
        reason = str(error)
    else:
        return chat
    raise UsageError(f"model '{model}' can't be set up: {one_line(redact(reason), 300)}")
