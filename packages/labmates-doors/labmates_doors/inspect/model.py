"""Inspect's models as models of labmates: ``inspect:NAME``, within a task of Inspect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolFunction, ToolInfo, ToolParams
from inspect_ai.util import span
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.json_schema import dereference_refs

PROVIDER: Final = "inspect"
_ENDS: Final = {"max_tokens": "length", "model_length": "length"}


class InspectChat(BaseChatModel):
    """A model of Inspect, by its name there; the task's own model keeps the arguments of Inspect's command line.

    Inspect retries, caches, limits and logs the calls; each is in a span with the agent's name.
    """

    model: str
    max_tokens: int | None = None

    @property
    def _llm_type(self) -> str:
        return PROVIDER

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools; `tool_choice` is ``any`` or the name of a tool."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("Inspect's models are called in its event loop")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        tools: Sequence[dict[str, Any]] = (),
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        own = get_model()
        model = own if str(own) == self.model else get_model(self.model)
        agent = str((run_manager.metadata if run_manager else {}).get("agent") or "agent")
        async with span(agent, type="agent"):
            output = await model.generate(
                [_message(message) for message in messages],
                tools=[_tool(tool["function"]) for tool in tools],
                tool_choice=_choice(tool_choice) if tools else None,
                config=GenerateConfig(max_tokens=self.max_tokens, stop_seqs=stop),
            )
        return ChatResult(generations=[ChatGeneration(message=_reply(output))])


def _message(message: BaseMessage) -> ChatMessage:
    match message:
        case SystemMessage():
            return ChatMessageSystem(content=message.text)
        case ToolMessage():
            return ChatMessageTool(content=message.text, tool_call_id=message.tool_call_id)
        case AIMessage():
            calls = [ToolCall(id=str(c["id"]), function=c["name"], arguments=c["args"]) for c in message.tool_calls]
            return ChatMessageAssistant(content=message.text, tool_calls=calls or None)
    return ChatMessageUser(content=message.text)


def _tool(function: dict[str, Any]) -> ToolInfo:
    schema = dereference_refs(function.get("parameters", {}))  # Inspect's schemas have no references
    return ToolInfo(
        name=function["name"],
        description=function.get("description", ""),
        parameters=ToolParams(properties=schema.get("properties", {}), required=schema.get("required", [])),
    )


def _choice(name: str | None) -> ToolChoice:
    if name in (None, "any"):
        return cast("Literal['any', 'auto']", name or "auto")
    return ToolFunction(name=str(name))


def _reply(output: ModelOutput) -> AIMessage:
    said, used = output.message, output.usage
    parts = said.content if isinstance(said.content, list) else []
    reasoning = "\n".join(part.reasoning for part in parts if isinstance(part, ContentReasoning))
    usage: Any = None
    if used is not None:
        read, written = used.input_tokens_cache_read or 0, used.input_tokens_cache_write or 0
        inputs = used.input_tokens + read + written
        usage = {
            "input_tokens": inputs,
            "output_tokens": used.output_tokens,
            "total_tokens": inputs + used.output_tokens,
            "input_token_details": {"cache_read": read, "cache_creation": written},
            "output_token_details": {"reasoning": used.reasoning_tokens or 0},
        }
    return AIMessage(
        said.text,
        tool_calls=[{"id": call.id, "name": call.function, "args": call.arguments} for call in said.tool_calls or []],
        additional_kwargs={"reasoning_content": reasoning} if reasoning else {},
        usage_metadata=usage,
        response_metadata={"finish_reason": _ENDS.get(output.stop_reason, output.stop_reason)},
    )
