"""Chat models in OpenAI's protocol that keep the fields that LangChain's class drops, in both directions."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai.chat_models.base import BaseChatOpenAI

from labmates.models.wire import WIRE, attached_by_server


class KeepsFields(BaseChatOpenAI):
    """A chat model that sends back what its server attached to a message or a tool call."""

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        given = self._convert_input(input_).to_messages()
        for message, sent in zip(given, payload.get("messages", ()), strict=False):
            if isinstance(message, AIMessage) and (attached := message.additional_kwargs.get(WIRE)):
                sent.update(attached["message"])
                for call in sent.get("tool_calls", ()):
                    call.update(attached["calls"].get(call["id"], {}))
        return cast(dict[str, Any], payload)

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        completion = response if isinstance(response, dict) else response.model_dump()
        for generation in result.generations:
            generation.message.additional_kwargs[WIRE] = attached_by_server(completion)
        return result

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices") or []
        if made is not None and choices and isinstance(made.message, AIMessageChunk):
            made.message.additional_kwargs[WIRE] = {"deltas": [choices[0].get("delta") or {}]}
        return made


@cache
def keeping_fields(kind: type[BaseChatOpenAI]) -> type[BaseChatOpenAI]:
    """A provider's class that keeps fields."""
    return cast(type[BaseChatOpenAI], type(kind.__name__, (KeepsFields, kind), {"__module__": kind.__module__}))
