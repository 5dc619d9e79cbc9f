"""`SharedBudget`: LangChain agent middleware that puts any number of agents under one pool of money.

It reserves the maximum cost of a model or tool call before the call, and settles at the actual usage. It needs no
store: the pool lives in the middleware object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from threading import Event
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.types import Command
from pydantic import ValidationError

from labmates.budgets.budget import Budget, BusyError, Hold, Waiter, when_free
from labmates.budgets.ledger import InsufficientFundsError, JournalLine, Ledger, Share
from labmates.budgets.money import parse_dollars
from labmates.budgets.paid_calls import ModelCall, input_bound, reply_limit, settled_tool, with_line
from labmates.budgets.prices import Price, PriceList, listed_model, read_prices
from labmates.budgets.visibility import Visibility, budget_status
from labmates.errors import UsageError, explain

UNNAMED: Final = "agent"
"""The name of an agent without a name."""
_OUTPUT_LIMIT: Final = "Length limit: at most {limit} tokens in this reply, reasoning included."


class SharedBudget(Budget, AgentMiddleware[AgentState[Any], Any, Any]):
    """One pool of money for all agents that have this object in their ``middleware``.

    Put it last: retries and fallbacks of other middleware are then reserved and settled one by one. Agents are
    identified by their ``name``. If a model calls several tools at once, each call, with all agents in it, gets an
    equal share of the remaining funds, so that runs repeat in any order of completion. Thread-safe.

    Parameters
    ----------
    total
        Size of the pool, in dollars.
    prices
        Price list: a `PriceList`, its fields as a mapping (``{"default": {"input": "0.50", "output": "3"}}``), or text
        as for ``--prices`` (``"input=0.5,output=3,tool_call=0.01"``). ``"bill"`` means the providers' prices, by the
        shipped table. Default: $0.50 and $3 per million tokens.
    visibility
        Budget text at the end of each prompt: ``full`` shows the pool and each member's spending, ``team`` the agent's
        spending, ``hidden`` nothing. ``full`` and ``team`` add a notice when the pool runs low (30 %, 15 %).
    max_output_tokens
        Limit on each reply, unless the model has a lower one; lowered further if the pool can't pay it.
    exit_behavior
        If the pool can't pay a reply, ``end`` ends the agent with a message that gives the reason, and ``error`` raises
        `InsufficientFundsError`.

    Raises
    ------
    UsageError
        If a parameter is invalid.

    Examples
    --------
    >>> budget = SharedBudget("0.50")
    >>> agent = create_agent(model, tools, middleware=[budget], name="alice")  # doctest: +SKIP
    >>> print(budget)
    Budget: $0.0000 of $0.5000 spent, $0.5000 (100 %) left.
    """

    def __init__(
        self,
        total: str | float | Decimal,
        *,
        prices: PriceList | Mapping[str, Any] | str | None = None,
        visibility: Visibility = "full",
        max_output_tokens: int = 4096,
        exit_behavior: Literal["end", "error"] = "end",
    ) -> None:
        _check("visibility", visibility, ("full", "team", "hidden"))
        _check("exit_behavior", exit_behavior, ("end", "error"))
        if max_output_tokens < 1:
            raise UsageError(f"max_output_tokens: {max_output_tokens} is not a number of tokens (try 4096)")
        self.visibility = visibility
        self.max_output_tokens = max_output_tokens
        self.exit_behavior = exit_behavior
        super().__init__(Ledger(_micro_dollars(total)))
        self._whole = Share(self.ledger.total)
        self._prices = _price_list(prices)
        self._splits: dict[str, _Split] = {}
        self._schemas: dict[int, tuple[BaseTool, dict[str, Any]]] = {}

    def __str__(self) -> str:
        return budget_status("full", self.total, self.spent_by_member, "", notice=False)

    @property
    def total(self) -> int:
        """Size of the pool, in micro-dollars."""
        return self.ledger.total

    @property
    def spent(self) -> int:
        """The sum of all charges, in micro-dollars."""
        return self.ledger.spent

    @property
    def available(self) -> int:
        """The pool less charges and holds, in micro-dollars."""
        return self.ledger.available

    @property
    def spent_by_member(self) -> dict[str, int]:
        """The charges of each agent, in micro-dollars."""
        with self.ledger.lock:
            return self._whole.spent

    @property
    def journal(self) -> tuple[JournalLine, ...]:
        """All lines, oldest first; ``pandas.DataFrame(budget.journal)`` makes a table of them."""
        _, *lines = self.ledger.journal
        return tuple(lines)

    def shares(self, number: int) -> list[AbstractContextManager[None]]:
        """Equal shares of the remaining funds, each a context for the calls of one of several parallel agents.

        Parameters
        ----------
        number
            Number of shares; at least 1.

        Examples
        --------
        >>> async def work(agent, share):  # doctest: +SKIP
        ...     with share:
        ...         return await agent.ainvoke(question)
        >>> await asyncio.gather(*map(work, agents, budget.shares(len(agents))))  # doctest: +SKIP
        """
        if number < 1:
            raise UsageError(f"number: {number} is not a number of shares (at least 1)")
        with self.ledger.lock:
            limit, before = self.ledger.left(self.share) // number, self.share.spent
            return [self._within(self.share.part(limit, before)) for _ in range(number)]

    def metered(self, model: str | BaseChatModel) -> BaseChatModel:
        """A chat model paid by the pool, for calls anywhere: in tools, or in other middleware.

        An agent that has the budget in its ``middleware`` pays its calls only once. It does not stream.

        Parameters
        ----------
        model
            A chat model, or its name as ``init_chat_model`` takes it.
        """
        chat = init_chat_model(model) if isinstance(model, str) else model
        return MeteredModel(inner=chat, budget=self, profile=chat.profile)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Reserve, call the model, and settle."""
        call = self.begin(request, self)
        if call is None:
            return self.refusal()
        with call:
            return call.settled(handler(call.request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """Reserve, call the model, and settle."""
        call = await self.abegin(request, self)
        if call is None:
            return self.refusal()
        with call:
            return call.settled(await handler(call.request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Reserve, call the tool within its share, and settle."""
        with self._tool_share(request):
            if not self._prices.tool_call:
                return handler(request)
            call = self._tool_call(request)
            if call is None:
                return self._refused_tool(request)
            with call:
                return settled_tool(call, handler(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Reserve, call the tool within its share, and settle."""
        with self._tool_share(request):
            if not self._prices.tool_call:
                return await handler(request)
            call = self._tool_call(request)
            if call is None:
                return self._refused_tool(request)
            with call:
                return settled_tool(call, await handler(request))

    @property
    def share(self) -> Share:
        """The share of the calling agent."""
        return _SHARES.get().get(self, self._whole)

    @property
    def member(self) -> str:
        """The name of the calling agent."""
        try:
            return _agent(get_config().get("metadata", {}))
        except RuntimeError:  # outside of a graph
            return UNNAMED

    @contextmanager
    def _within(self, share: Share) -> Iterator[None]:
        token = _SHARES.set({**_SHARES.get(), self: share})
        try:
            yield
        finally:
            _SHARES.reset(token)

    @contextmanager
    def _tool_share(self, request: ToolCallRequest) -> Iterator[None]:
        """The context of a tool call: an equal share for each, if a message has several."""
        message = next((m for m in reversed(_messages(request.state)) if isinstance(m, AIMessage)), None)
        if message is None or message.id is None or len(message.tool_calls) < 2:
            yield
            return
        with self.ledger.lock:
            number, parent = len(message.tool_calls), self.share
            # The first call to start sets all shares: later spending must not count.
            split = self._splits.setdefault(
                message.id, _Split(self.ledger.left(parent) // number, parent.spent, number)
            )
            split.waiting -= 1
            if not split.waiting:
                del self._splits[message.id]
            part = parent.part(split.limit, split.before)
        with self._within(part):
            yield

    def begin(self, request: ModelRequest[Any], payer: Budget) -> ModelCall | None:
        """Reserve a model call; None if the payer can't pay it.

        Waits while calls in flight hold the money for a whole reply.
        """
        while True:
            freed = Event()
            try:
                return self._model_call(request, payer, None if _in_event_loop() else freed.set)
            except BusyError:
                freed.wait()

    async def abegin(self, request: ModelRequest[Any], payer: Budget) -> ModelCall | None:
        """Reserve a model call; see `begin`."""
        return await when_free(partial(self._model_call, request, payer))

    def _model_call(self, request: ModelRequest[Any], payer: Budget, waiter: Waiter | None) -> ModelCall | None:
        """Reserve a model call with its budget status and limit; None if the pool can't pay it.

        Raises
        ------
        BusyError
            If calls in flight hold the money for a whole reply; `waiter` is called when one of them ends.
        """
        if isinstance(request.model, MeteredModel) and request.model.budget is self:
            request = request.override(model=request.model.inner)
        name, price = self._price(request.model)
        tools = self._schemas_of(request)
        with self.ledger.lock:
            if status := payer.status(self.visibility):
                request = with_line(request, status)
            wanted = min(self.max_output_tokens, reply_limit(request) or self.max_output_tokens)
            stated = with_line(request, _OUTPUT_LIMIT.format(limit=wanted))
            try:
                limit = payer.affordable(
                    f"model {name}",
                    price,
                    wanted,
                    input_bound(request, tools),
                    stated=partial(input_bound, stated, tools),
                    waiter=waiter,
                )
            except InsufficientFundsError:
                return None
            if limit < wanted:
                request = with_line(request, _OUTPUT_LIMIT.format(limit=limit))
            return ModelCall(payer, f"model {name}", request, tools, price, limit)

    def _tool_call(self, request: ToolCallRequest) -> Hold | None:
        try:
            return self.reserve(self._prices.tool_call, f"tool {request.tool_call['name']}")
        except InsufficientFundsError:
            return None

    def _price(self, model: BaseChatModel) -> tuple[str, Price]:
        """The full name of a model and its price."""
        known = model._get_ls_params()
        provider, name = str(known.get("ls_provider", "")), str(known.get("ls_model_name") or type(model).__name__)
        full = f"{provider}:{name}"
        if self._prices.credits == "list":
            return full, self._prices.models.get(name) or self._prices.of(full)
        price = self._prices.models.get(full) or self._prices.models.get(name)
        if price is None and (row := listed_model(provider, name)) is not None:
            price = row.price
        if price is None:
            raise UsageError(f"prices: the shipped table has no price of {full}; add it to prices['models']")
        return full, price

    def _schemas_of(self, request: ModelRequest[Any]) -> list[dict[str, Any]]:
        """The schemas of a request: its tools, and the format of its reply."""
        schemas = [self._schema(tool) for tool in request.tools]
        reply_format: Any = request.response_format
        specs = getattr(reply_format, "schema_specs", None) or [getattr(reply_format, "schema_spec", None)]
        return schemas + [spec.json_schema for spec in specs if spec is not None]

    def _schema(self, tool: BaseTool | dict[str, Any]) -> dict[str, Any]:
        if isinstance(tool, dict):
            return tool
        if id(tool) not in self._schemas:
            self._schemas[id(tool)] = tool, convert_to_openai_tool(tool)
        return self._schemas[id(tool)][1]

    def refusal(self) -> AIMessage:
        """The last reply for an empty pool; raises `InsufficientFundsError` if ``exit_behavior="error"``."""
        if self.exit_behavior == "error":
            raise InsufficientFundsError(f"the shared budget can't pay another reply. {self}")
        reason = "" if self.visibility == "hidden" else ": the shared budget can't pay another reply"
        return AIMessage(f"I stop here{reason}.", response_metadata={"finish_reason": "budget"})

    def _refused_tool(self, request: ToolCallRequest) -> ToolMessage:
        reason = "" if self.visibility == "hidden" else ": the shared budget can't pay it"
        call = request.tool_call
        return ToolMessage(
            f"The call was not made{reason}.", name=call["name"], tool_call_id=call["id"], status="error"
        )


_SHARES: ContextVar[Mapping[SharedBudget, Share]] = ContextVar("shares", default=MappingProxyType({}))
"""The share of each budget that pays for calls in the current context."""


@dataclass
class _Split:
    """The share of each tool call of a message, and the number of calls yet to begin."""

    limit: int
    before: Mapping[str, int]
    waiting: int


class MeteredModel(BaseChatModel):
    """A chat model charged to a pool; see `SharedBudget.metered`."""

    inner: BaseChatModel
    budget: Any

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop, **kwargs)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The model with tools, in its provider's form."""
        return self.bind(**getattr(self.inner.bind_tools(tools, **kwargs), "kwargs", {}))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call: ModelCall | None = self.budget.begin(self._request(messages, kwargs), self._payer(run_manager))
        if call is None:
            return _result(self.budget.refusal())
        with call:
            return call.generated(call.request.model._generate(call.prompt, stop, run_manager, **call.settings))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call: ModelCall | None = await self.budget.abegin(self._request(messages, kwargs), self._payer(run_manager))
        if call is None:
            return _result(self.budget.refusal())
        with call:
            result = await call.request.model._agenerate(call.prompt, stop, run_manager, **call.settings)
            return call.generated(result)

    def _request(self, messages: list[BaseMessage], settings: dict[str, Any]) -> ModelRequest[Any]:
        return ModelRequest(
            model=self.inner,
            messages=cast(list[AnyMessage], messages),
            tools=list(settings.get("tools", ())),
            model_settings=settings,
        )

    def _payer(self, run: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> Budget:
        return Budget(self.budget.ledger, self.budget.share, _agent(run.metadata if run else {}))


def _agent(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("lc_agent_name") or UNNAMED)


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def _in_event_loop() -> bool:
    """Whether waiting here would block an event loop, and with it the calls to wait for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _messages(state: Any) -> Sequence[BaseMessage]:
    if isinstance(state, dict):
        return cast(Sequence[BaseMessage], state.get("messages", ()))
    return cast(Sequence[BaseMessage], getattr(state, "messages", state))


def _check(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UsageError(f"{name}: {value!r} is not one of {', '.join(allowed)}")


def _micro_dollars(total: object) -> int:
    try:
        return parse_dollars(total)
    except ValueError as error:
        raise UsageError(f"total: {error}") from None


def _price_list(prices: PriceList | Mapping[str, Any] | str | None) -> PriceList:
    if isinstance(prices, str):
        return read_prices(prices)
    try:
        return PriceList.model_validate(prices or {})
    except ValidationError as error:
        raise UsageError(explain(error, lambda field: f"prices.{field}" if field else "prices")) from None
