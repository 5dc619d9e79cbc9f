"""Model and tool calls of LangChain agents, paid by a pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatResult
from langgraph.types import Command

from labmates.budgets.budget import GATEWAY_TIMEOUTS, Budget, Hold, ReplyHold
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.prices import Price
from labmates.budgets.tokens import (
    LIMIT_FIELDS,
    MOST_TOKENS,
    TEMPLATE_TOKENS,
    estimate_messages,
    limited,
    read_usage,
    token_bound,
)


class ModelCall(ReplyHold):
    """A model call with a limit on its reply, in tokens."""

    def __init__(
        self,
        budget: Budget,
        call: str,
        request: ModelRequest[Any],
        tools: Sequence[dict[str, Any]],
        price: Price,
        limit: int,
    ) -> None:
        super().__init__(budget, call, price, input_bound(request, tools), limit)
        self.request = _limited(request, limit)
        self._tools = tools

    def settled(self, response: ModelResponse[Any]) -> ModelResponse[Any]:
        """Charge the reply's usage, and return the response."""
        reply = next((message for message in response.result if isinstance(message, AIMessage)), AIMessage(""))
        self._settle_reply(reply)
        return response

    def generated(self, result: ChatResult) -> ChatResult:
        """Charge the reply's usage, and return the result."""
        self._settle_reply(cast(AIMessage, result.generations[0].message))
        return result

    @property
    def prompt(self) -> list[BaseMessage]:
        """The messages to send."""
        return prompt_of(self.request)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the call."""
        return self.request.model_settings

    def failed(self, error: BaseException) -> None:
        """Release the hold if the provider bills nothing; charge all other errors, since a reply may have been lost."""
        if isinstance(reply := getattr(error, "ai_message", None), AIMessage):
            self._settle_reply(reply)  # The reply arrived, in another format than requested.
        elif _is_unbilled(error):
            super().failed(error)
        else:
            self.lost(self._inputs(), type(error).__name__)

    def _settle_reply(self, reply: AIMessage) -> None:
        reported = cast("Mapping[str, Any] | None", reply.usage_metadata)
        if reported is not None and reported.get("total_cost") == 0:
            self.release("from LangChain's cache")
            return
        # One wrong report must not empty the pool.
        most = (self._most_inputs(), max(self.limit, token_bound([reply]) - TEMPLATE_TOKENS))
        usage, doubts = read_usage(
            reported, prompt=self._inputs, output=lambda: estimate_messages([reply]), reasoning=0, most=most
        )
        note = "; ".join(doubts) or ("estimated: the server reported no usage" if usage.estimated else "")
        self.settle(usage, note)

    def _inputs(self) -> int:
        return estimate_messages(self.prompt, self._tools)

    def _most_inputs(self) -> int:
        """An upper bound of the prompt's tokens; of one with blocks, which may name pictures, that of any report."""
        is_text = all(isinstance(message.content, str) for message in self.prompt)
        return token_bound(self.prompt, self._tools) if is_text else MOST_TOKENS


def _is_unbilled(error: BaseException) -> bool:
    """Whether a provider answered with an error status, no connection came about, or the pool could not pay."""
    reason: BaseException | None = error
    while reason is not None:
        named = (getattr(reason, name, None) for name in ("status_code", "status", "code"))
        if status := next((code for code in named if isinstance(code, int) and 400 <= code < 600), 0):
            return status not in GATEWAY_TIMEOUTS
        is_refused = isinstance(reason, ConnectionRefusedError | InsufficientFundsError)
        if is_refused or type(reason).__name__ in ("ConnectError", "ConnectTimeout"):
            return True
        reason = reason.__cause__ or reason.__context__
    return False


def settled_tool(hold: Hold, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
    """The result of a tool call, which is charged unless it failed."""
    if isinstance(result, ToolMessage) and result.status == "error":
        hold.release("error")
    else:
        hold.charge(hold.amount)
    return result


def prompt_of(request: ModelRequest[Any]) -> list[BaseMessage]:
    """All messages of a request."""
    return [*filter(None, [request.system_message]), *request.messages]


def input_bound(request: ModelRequest[Any], tools: Sequence[dict[str, Any]]) -> int:
    """An upper bound of a request's input tokens."""
    return token_bound(prompt_of(request), tools)


def with_line(request: ModelRequest[Any], line: str) -> ModelRequest[Any]:
    """The request with a line at the end of its prompt, which keeps cached prefixes valid; the state is unchanged."""
    *messages, last = request.messages or [HumanMessage("")]
    if not isinstance(last, HumanMessage | ToolMessage):
        return request.override(messages=[*messages, last, HumanMessage(line)])
    if isinstance(last.content, str):
        content: Any = f"{last.content}\n\n{line}" if last.content else line
    else:
        content = [*last.content, {"type": "text", "text": line}]
    ended: AnyMessage = last.model_copy(update={"content": content})
    return request.override(messages=[*messages, ended])


def reply_limit(request: ModelRequest[Any]) -> int | None:
    """The lowest limit on a reply set by the request or its model; None if neither sets one."""
    settings = [request.model_settings.get(name) for name in LIMIT_FIELDS]
    fields = [getattr(request.model, name, None) for name in LIMIT_FIELDS]
    return min((limit for limit in (*settings, *fields) if isinstance(limit, int) and limit > 0), default=None)


def _limited(request: ModelRequest[Any], limit: int) -> ModelRequest[Any]:
    """The request with a limit on its reply, if its model supports one."""
    settings = {name: limit if name in LIMIT_FIELDS else value for name, value in request.model_settings.items()}
    return request.override(model=limited(request.model, limit), model_settings=settings)
