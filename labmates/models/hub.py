"""`ModelHub`: the single access point to chat models."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Required, Self, TypedDict, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from labmates.budgets.budget import CallMeter, free_meter
from labmates.budgets.prices import Price
from labmates.models.attached import for_model, source_of
from labmates.models.cache import CallCache, call_key, reply_from_data, reply_to_data
from labmates.models.connection import LIMITS, Backoff, CallLog, Connection, Dialect, Slots
from labmates.models.endpoints import Endpoint, endpoint_of, listed, price_of
from labmates.models.entries import DEFAULT_ACCESS
from labmates.models.errors import EndpointError
from labmates.models.names import GIVEN, ModelName, given_chat, has_own_chat, parse_model
from labmates.models.normalise import normalise, safe_message
from labmates.models.options import ModelOptions
from labmates.models.prefix import cache_marks
from labmates.models.provider_words import cost_of
from labmates.models.providers import (
    LIMIT_FIELDS,
    provider_chat,
    request_body,
    takes_tool_choice,
    use_client,
)
from labmates.models.redact import Redactor
from labmates.models.reply import BillSource, Reply
from labmates.models.sending import Request, Send, per_call, per_instance
from labmates.models.servers import SERVERS, Weights
from labmates.models.settings import NO_SETTINGS, ModelSettings

if TYPE_CHECKING:
    import httpx2


_BIG = 100_000


class CallParameters(TypedDict, total=False):
    """The parameters of a call."""

    # Available tools: LangChain tools, or OpenAI schemas (which saves a conversion per call).
    tools: Sequence[BaseTool | dict[str, Any]]
    seed: Required[int]  # Sent if the provider takes one. The jitter of retries derives from it too.
    max_output_tokens: Required[int]  # output limit in tokens, reasoning included
    temperature: float | None  # None leaves it to the server
    insist: bool  # fail if the server refuses a temperature, instead of retrying without it
    # Format of the reply in OpenAI's protocol; see `labmates.models.structured`. Scripted models ignore it.
    response_format: Mapping[str, Any] | None
    tool_choice: str  # the tool that the reply must call, or `ANY_TOOL`; empty by default
    # LangChain's configuration: ``run_name``, ``tags`` and ``metadata`` reach the trace. Each attempt is a run of the
    # trace, with its number in the metadata.
    config: RunnableConfig
    # Pays for each attempt; without a meter, attempts are free. The caller settles the reservation of the successful
    # attempt.
    meter: CallMeter


@dataclass(eq=False)
class ModelHub:
    """Builds chat models by name and calls them; an async context manager, for one event loop.

    Every model is built once. All calls to an endpoint share a limit on calls in flight; all scripted models are one
    endpoint. The HTTP client belongs to the hub and is closed with it. `cache` serves all models except scripted ones.

    Examples
    --------
    >>> async with ModelHub(ModelOptions(base_url="http://127.0.0.1:8000/v1")) as hub:  # doctest: +SKIP
    ...     reply = await hub.call("openai:qwen3-4b", [HumanMessage("Hello")], seed=1, max_output_tokens=100)
    """

    options: ModelOptions
    _: KW_ONLY
    backoff: Backoff = field(default_factory=Backoff)
    cache: CallCache | None = None
    _connections: dict[str, Connection] = field(default_factory=dict, init=False)
    _scripted: dict[str, BaseChatModel] = field(default_factory=dict, init=False)
    _slots: dict[str, asyncio.Semaphore] = field(default_factory=dict, init=False)
    _charges: dict[str, Price | None] = field(default_factory=dict, init=False)
    _client: httpx2.AsyncClient | None = field(default=None, init=False)
    _open: AsyncExitStack | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._open = AsyncExitStack()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._open is not None
        await self._open.__aexit__(kind, error, trace)
        self._open = self._client = None
        self._connections.clear()
        self._scripted.clear()
        self._slots.clear()

    async def call(self, model: str, messages: Sequence[BaseMessage], **parameters: Unpack[CallParameters]) -> Reply:
        """Call a model and return its reply, faulty or not (see `Reply.faults`).

        The settings in `model` (``provider:name?setting=value``) override parameters, except the output limit. Raises
        `UsageError` if the name or the base URL is invalid, or a provider can't be set up; `EndpointError` if the
        server refused the call, or failed at every attempt; `ContextOverflowError` if the prompt is too long for the
        model; `ModelPausedError` if the server takes no calls for hours, then for all later calls of the model too.
        """
        if self._open is None:
            raise RuntimeError("a ModelHub is used within 'async with'")
        self.prepare(model)
        connection, started = self._connections.get(model), time.monotonic()
        request = _request(
            model, NO_SETTINGS if connection is None else connection.model.settings, messages, parameters
        )
        cache = None if connection is None else self.cache
        key = call_key(model, connection.endpoint.address, request) if connection and cache else ""
        if cache is not None and (data := await cache.get(key)) is not None:
            request.meter.begin()
            return reply_from_data(data, time.monotonic() - started)
        log = CallLog()
        if connection is None:
            message = await self._compose(model, request, log)
        else:
            message = await connection.ask(request, log)

        def read() -> Reply:
            source = source_of(model) if connection is None else connection.source
            return normalise(
                message,
                sent=request.messages,
                tools=request.tools,
                limit=request.max_output_tokens,
                source=source,
            )

        # Parsing a long reply must not block other calls.
        reply = read() if len(str(message.content)) <= _BIG else await asyncio.to_thread(read)
        bill, price = cost_of(message), self.price(model)
        bill_from: BillSource = "" if bill is None else "server"
        if bill is None and price is not None:
            bill, bill_from = reply.usage.cost(price), "table"
        reply = replace(
            reply,
            bill=bill,
            bill_from=bill_from,
            attempts=log.attempts,
            seconds=time.monotonic() - started,
            errors=tuple(map(str, log.failures)),
        )
        if cache is not None and not reply.faults:
            await cache.put(key, reply_to_data(reply))
        return reply

    def prepare(self, model: str) -> None:
        """Import and set up what calls of a model need; its first call does so otherwise, which can take seconds.

        Raises `UsageError` if the name or the base URL is invalid, or the provider can't be set up.
        """
        if model not in self._scripted and model not in self._connections:
            self._connect(model)

    @property
    def paused(self) -> list[str]:
        """The models to which nothing is sent any more; see `ModelPausedError`."""
        return [model for model, connection in self._connections.items() if connection.paused is not None]

    def price(self, model: str) -> Price | None:
        """The price that the provider of a model charges; None if unknown."""
        if model not in self._charges:
            name = parse_model(model)
            self._charges[model] = None if name.scripted else price_of(name, self._endpoint(name), self.options)
        return self._charges[model]

    def context(self, model: str) -> int | None:
        """The context window of a model in tokens, from its settings or the shipped table; None if unknown."""
        if (name := parse_model(model)).scripted or name.settings.context_tokens:
            return name.settings.context_tokens
        shipped = listed(name, self._endpoint(name))
        return shipped.context_tokens if shipped else None

    def persona(self, model: str) -> str | None:
        """The text of a model's persona; None without one."""
        return self.options.entries.get(model, DEFAULT_ACCESS).persona_text

    def _endpoint(self, name: ModelName) -> Endpoint:
        known = self._connections.get(str(name))
        return known.endpoint if known else endpoint_of(name, self.options, os.environ)

    async def _compose(self, model: str, request: Request, log: CallLog) -> AIMessage:
        """The message of a scripted model, which has no server."""
        log.attempts = 1
        request.meter.begin()
        arguments: dict[str, Any] = {"seed": request.seed, "max_tokens": request.max_output_tokens}
        message = await per_call(self._scripted[model])(replace(request, response_format=None), arguments)
        assert isinstance(message, AIMessage)
        return message

    def _connect(self, model: str) -> None:
        name = parse_model(model)
        if name.scripted:
            from labmates.models.scripted import make_baseline

            self._scripted[model] = make_baseline(name.name)
            return
        endpoint = endpoint_of(name, self.options, os.environ)
        redact = Redactor.from_environment(os.environ, endpoint.key)
        send, dialect = self._sender(name, endpoint, redact)
        access = self.options.entries.get(model, DEFAULT_ACCESS)
        at_once = self.options.max_concurrent_calls if endpoint.weights is None else endpoint.weights.slots
        slots = Slots(self._slots.setdefault(endpoint.address, asyncio.Semaphore(at_once)), access)
        price = price_of(name, endpoint, self.options)
        self._connections[model] = Connection(
            name,
            endpoint,
            send,
            dialect,
            slots,
            self.options,
            self.backoff,
            redact,
            source_of(model),
            price,
            is_foreign=not has_own_chat(name.provider),
        )

    def _sender(self, name: ModelName, endpoint: Endpoint, redact: Redactor) -> tuple[Send, Dialect]:
        if endpoint.weights is not None:
            return self._served(name, endpoint, endpoint.weights, redact)
        if has_own_chat(name.provider):
            from labmates.models.openai_chat import openai_chat

            chat = openai_chat(name, endpoint, self._http_client(), self.options, redact, request_body(name))
            return per_call(chat), Dialect(LIMITS[endpoint.hosted and name.provider == "openai"])
        limit = LIMIT_FIELDS.get(name.provider, "max_tokens")
        if name.provider == GIVEN:
            from labmates.models.providers import prepared

            given = given_chat(name.name)
            may_stream = given.disable_streaming is not True
            return per_instance(partial(prepared, given), may_stream=may_stream), Dialect(limit)

        def build(tokens: int, temperature: float | None) -> BaseChatModel:
            settings = {limit: tokens} if temperature is None else {limit: tokens, "temperature": temperature}
            chat = provider_chat(name, endpoint, self.options, redact, **settings)
            if name.provider == "anthropic":
                use_client(chat, self._http_client(), self.options)
            return chat

        # Reports errors early, and keeps the import (seconds) out of the first attempt's time.
        build(1024, None)
        marks = cache_marks(name.provider, name.name)
        watched = name.provider == "anthropic"
        return per_instance(build, marks, is_watched=watched, may_stream=True), Dialect(limit)

    def _served(self, name: ModelName, endpoint: Endpoint, weights: Weights, redact: Redactor) -> tuple[Send, Dialect]:
        """The sender of a model file; it knows the server's address from the first call on."""
        from labmates.models.clients import new_client
        from labmates.models.openai_chat import openai_chat

        assert self._open is not None
        client = new_client(self.options, is_local=True)
        self._open.push_async_callback(client.aclose)
        server = SERVERS.get(name.provider).acquire(weights)
        self._open.push_async_callback(asyncio.to_thread, server.release)
        here = replace(endpoint, address="http://127.0.0.1/v1")
        chat = openai_chat(name, here, client, self.options, redact, request_body(name))
        return server.sender(per_call(chat), chat.point_to), Dialect(LIMITS[0])

    def _http_client(self) -> httpx2.AsyncClient:
        from labmates.models.clients import new_client

        if self._client is None:
            assert self._open is not None
            self._client = new_client(self.options)
            self._open.push_async_callback(self._client.aclose)
        return self._client


def _request(
    model: str, settings: ModelSettings, messages: Sequence[BaseMessage], parameters: CallParameters
) -> Request:
    """The request of a call, with the settings in a model's name in place of parameters."""
    seed, config = parameters["seed"], parameters.get("config", RunnableConfig())
    temperature = parameters.get("temperature") if settings.temperature is None else settings.temperature
    insisted = {
        "temperature": parameters.get("insist", True) and temperature is not None,
        "seed": settings.seed is not None,
    }
    choice = parameters.get("tool_choice", "")
    if choice and not takes_tool_choice(parse_model(model)):
        raise EndpointError(f"{model} can't be made to call a tool", model=model, status=400)
    return Request(
        messages=[safe_message(message) for message in for_model(messages, model)],
        tools=[
            tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in parameters.get("tools", ())
        ],
        seed=seed if settings.seed is None else settings.seed,
        max_output_tokens=parameters["max_output_tokens"],
        temperature=temperature,
        config=config,
        insisted=frozenset(name for name, is_insisted in insisted.items() if is_insisted),
        meter=parameters.get("meter") or free_meter(),
        response_format=parameters.get("response_format"),
        tool_choice=choice,
    )
