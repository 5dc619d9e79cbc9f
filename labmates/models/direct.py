"""Chat models that are called without LangChain's callbacks where nothing listens to them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from labmates.models.tracing import is_followed


class DirectChat(BaseChatModel):
    """A chat model whose `ainvoke` passes over LangChain's callbacks and cache, unless there are any.

    They take longer than everything else between a prompt and its request.
    """

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """The reply to a prompt."""
        if self.callbacks or self.verbose or get_llm_cache() is not None or is_followed(config):
            return await super().ainvoke(input, config, stop=stop, **kwargs)
        # Agents that work at the same time take turns, as with LangChain's call.
        await asyncio.sleep(0)
        result = await self._agenerate(self._convert_input(input).to_messages(), stop=stop, **kwargs)
        [generation] = result.generations
        message = cast(AIMessage, generation.message)
        about = {**(result.llm_output or {}), **(generation.generation_info or {}), **message.response_metadata}
        message.response_metadata = about
        return message
