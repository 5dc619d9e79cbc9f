"""A LangChain chat model that says what a function tells it to, with the usage that its messages carry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

Script = Callable[[list[BaseMessage], int], AIMessage | Awaitable[AIMessage]]
"""Makes the reply to a prompt under a limit on the reply, in tokens."""


def said(
    text: str, usage: tuple[int, int] | None = None, calls: Sequence[tuple[str, dict[str, Any]]] = ()
) -> AIMessage:
    """A reply with its input and output tokens, and calls of tools by name and arguments."""
    message = AIMessage(text)
    if usage is not None:
        used, written = usage
        message.usage_metadata = UsageMetadata(input_tokens=used, output_tokens=written, total_tokens=used + written)
    message.tool_calls = [
        {"name": name, "args": arguments, "id": f"call_{n}", "type": "tool_call"}
        for n, (name, arguments) in enumerate(calls)
    ]
    return message


class ScriptedChat(BaseChatModel):
    """The model; `asked` are the prompts that it got."""

    script: Script
    model: str = "scripted-chat"
    max_tokens: int = 1000
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted-chat"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(**kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        reply = self.script(messages, self.max_tokens)
        assert isinstance(reply, AIMessage)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        reply = self.script(messages, self.max_tokens)
        message = await reply if isawaitable(reply) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])
