"""The base of scripted baselines: replies composed by code, with true token counts and a true length limit.

A baseline is called like any other chat model: it receives the messages, the schemas of its tools, a seed and a token
limit, and nothing else. A subclass of `ScriptedModel` only implements `ScriptedModel.compose`; its draft becomes a
reply as on a server: cut at `max_tokens`, with counted tokens and parsed tool calls.
"""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langchain_core.language_models import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from labmates.budgets.tokens import estimate_messages, estimate_tokens, text_of
from labmates.models.orders import Order, order_of
from labmates.models.sending import BYTES_PER_TOKEN, DirectChat


@dataclass(frozen=True)
class Heard:
    """The input of a model in one call.

    Attributes
    ----------
    messages
        The conversation, oldest first.
    tools
        The available tools, as OpenAI function schemas.
    seed
        The only source of randomness.
    max_tokens
        Output limit in tokens; None without a limit.
    """

    messages: tuple[BaseMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    seed: int = 0
    max_tokens: int | None = None

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders of the conversation, oldest first."""
        return tuple(order for message in self.messages if (order := order_of(message)) is not None)

    @property
    def kind(self) -> str:
        """The kind of the newest order; empty without one."""
        return self.orders[-1].kind if self.orders else ""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of all orders of the conversation; newer facts replace older ones of the same name."""
        return {name: fact for order in self.orders for name, fact in order.facts.items()}

    def tool_names(self) -> tuple[str, ...]:
        """The names of the available tools, restricted to those that the orders list, if any."""
        names = tuple(str(tool.get("function", {}).get("name", "")) for tool in self.tools)
        facts = self.facts
        if "tools" in facts:
            return tuple(name for name in names if name in facts["tools"])
        return tuple(name for name in names if name not in facts.get("lacking", ()))


@dataclass(frozen=True)
class DraftCall:
    """A tool call as a model writes it: `arguments` is JSON text, whole or cut."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Draft:
    """The intended reply of a baseline: a text, then tool calls."""

    content: str = ""
    calls: tuple[DraftCall, ...] = ()


def call(name: str, /, **arguments: object) -> DraftCall:
    """A well-formed tool call."""
    return DraftCall(name, json.dumps(arguments, ensure_ascii=False))


def call_tokens(name: str, arguments: str) -> int:
    """The tokens of a tool call: its name and its arguments as the model writes them."""
    return estimate_tokens(f"{name}{arguments}")


def cut_to_tokens(text: str, tokens: int) -> str:
    """The longest prefix of `text` of at most `tokens` tokens."""
    if estimate_tokens(text) <= tokens:
        return text
    ends = range(min(len(text), tokens * BYTES_PER_TOKEN) + 1)
    return text[: bisect_right(ends, tokens, key=lambda end: estimate_tokens(text[:end])) - 1]


def make_reply(draft: Draft, heard: Heard, model: str) -> AIMessage:
    """The reply to a draft: cut at the token limit, with usage and finish reason.

    The text comes first, then the calls; everything beyond the limit is lost. The call in which the limit falls keeps
    a part of its arguments, which is invalid JSON (servers pass these on too).
    """
    most = sys.maxsize if heard.max_tokens is None else heard.max_tokens
    said = AIMessage(cut_to_tokens(draft.content, most))
    used, cut = estimate_tokens(text_of(said.content)), said.content != draft.content
    for place, wanted in enumerate(() if cut else draft.calls):
        arguments = wanted.arguments
        if cut := call_tokens(wanted.name, arguments) > (left := most - used):
            if estimate_tokens(wanted.name) >= left:
                break
            arguments = cut_to_tokens(wanted.name + arguments, left)[len(wanted.name) :]
        used += call_tokens(wanted.name, arguments)
        id_, parsed = f"call_{len(heard.messages)}_{place}", _parse(arguments)
        if parsed is not None:
            said.tool_calls.append(ToolCall(type="tool_call", id=id_, name=wanted.name, args=parsed))
        else:
            said.invalid_tool_calls.append(
                InvalidToolCall(
                    type="invalid_tool_call", id=id_, name=wanted.name, args=arguments, error="no JSON object"
                )
            )
        if cut:
            break
    read, used = estimate_messages(heard.messages, heard.tools), max(1, used)
    said.usage_metadata = UsageMetadata(input_tokens=read, output_tokens=used, total_tokens=read + used)
    finish = "length" if cut else "tool_calls" if draft.calls else "stop"
    said.response_metadata = {"finish_reason": finish, "model_name": model}
    return said


def _parse(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class ScriptedModel(DirectChat):
    """A chat model whose replies are composed by code.

    A reply depends only on the messages, the tools, ``seed`` and ``max_tokens`` of its call.

    Attributes
    ----------
    baseline
        Name in the registry.
    description
        One-line description.
    """

    baseline: ClassVar[str]
    description: ClassVar[str]

    @abstractmethod
    def compose(self, heard: Heard) -> Draft:
        """The draft of the reply."""

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        """The model with tools; `tool_choice` is ignored, as on many servers."""
        del tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": f"scripted:{self.baseline}"}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        del stop, kwargs
        return LangSmithParams(ls_provider="scripted", ls_model_name=self.baseline, ls_model_type="chat")

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return self._answer(messages, **kwargs)

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        # Composing takes milliseconds; a thread would cost more.
        return self._answer(messages, **kwargs)

    def reply(self, heard: Heard) -> AIMessage:
        """The reply to what it heard."""
        return make_reply(self.compose(heard), heard, f"scripted:{self.baseline}")

    def _answer(
        self,
        messages: list[BaseMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        seed: int | None = None,
        max_tokens: int | None = None,
        **_: Any,
    ) -> ChatResult:
        reply = self.reply(Heard(tuple(messages), tuple(tools or ()), seed or 0, max_tokens))
        return ChatResult(generations=[ChatGeneration(message=reply)])
