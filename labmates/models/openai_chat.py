"""OpenAI's protocol for any server: LangChain's `ChatOpenAI` with a robust reader of replies."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httpx2
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import Field, PrivateAttr, SecretStr

from labmates.models.clients import patience, pieces, synchronous_client
from labmates.models.completions import (
    WIRE,
    Json,
    StreamedReply,
    message_of,
    read_completion,
    split_lines,
)
from labmates.models.endpoints import NO_KEY, Endpoint
from labmates.models.failures import AttemptError, failure_of
from labmates.models.names import ModelName
from labmates.models.options import ModelOptions
from labmates.models.redact import Redactor
from labmates.models.reply import LISTENER
from labmates.models.sending import DirectChat

_BIG_BYTES = 131_072


class OpenAIChat(DirectChat, ChatOpenAI):
    """`ChatOpenAI` for servers that follow the protocol only roughly.

    Replies are parsed from the received bytes, so malformed ones raise no foreign errors, and reasoning text is kept
    (in ``additional_kwargs["reasoning_content"]``). What the server attached to a message or a call
    (``additional_kwargs["wire"]``) goes back to it. A streamed reply gives the same message as an unstreamed one.
    Errors are `AttemptError`, free of secrets before a tracer sees them. The output limit keeps its name. Use only
    ``ainvoke``.
    """

    ask_stream: bool = False
    """Ask the server to stream. (LangChain's ``streaming`` has its own reader.)"""

    body: dict[str, Any] = Field(default_factory=dict)
    """Members of every request, from the model's settings."""

    _redact: Redactor = PrivateAttr(default_factory=Redactor)
    _client: httpx2.AsyncClient
    _url: httpx2.URL
    _headers: dict[str, str]

    def point_to(self, address: str) -> None:
        """Send further calls to the server at this base URL."""
        self._url = httpx2.URL(f"{address.rstrip('/')}/chat/completions")  # parsed once

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """The reply, without OpenAI's client, which would dominate the cost of a call."""
        stream_usage = kwargs.pop("stream_usage", True)
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        if self.ask_stream or LISTENER.get():
            payload["stream"] = True
            if stream_usage:
                payload["stream_options"] = {"include_usage": True}
        try:
            request = self._client.build_request(
                "POST", self._url, json={**payload, **self.body}, headers=self._headers
            )
            response = await self._client.send(request, stream=True)
            try:
                message = message_of(await _completion(request, response))
                return ChatResult(generations=[ChatGeneration(message=message)])
            finally:
                await response.aclose()
        except Exception as error:
            failure = failure_of(error, self._redact)
            if failure is None:
                raise
            # Without the cause: a tracer would print it, and it may quote the key.
            raise AttemptError(failure) from None

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        limit = kwargs.pop("max_tokens", None)  # ChatOpenAI would rename it.
        payload = cast(dict[str, Any], super()._get_request_payload(input_, stop=stop, **kwargs))
        given = self._convert_input(input_).to_messages()
        for message, sent in zip(given, payload.get("messages", ()), strict=False):
            if isinstance(message, AIMessage) and (attached := message.additional_kwargs.get(WIRE)):
                sent.update(attached["message"])
                for call in sent.get("tool_calls", ()):
                    call.update(attached["calls"].get(call["id"], {}))
        return payload if limit is None else {**payload, "max_tokens": limit}


def openai_chat(
    model: ModelName,
    endpoint: Endpoint,
    client: httpx2.AsyncClient,
    options: ModelOptions,
    redact: Redactor,
    body: dict[str, Any],
) -> OpenAIChat:
    """Build the chat model `model` at `endpoint`, with the members `body` in each request.

    `client` belongs to the running event loop: LangChain would share one between loops, which fails in the second.
    """
    chat = OpenAIChat(
        model=model.name,
        base_url=endpoint.address,
        api_key=SecretStr(endpoint.key or NO_KEY),
        http_async_client=client,
        http_client=synchronous_client(),
        http_socket_options=(),  # else LangChain warns that it ignores proxies, which our client does not
        timeout=patience(options),
        max_retries=0,
        use_responses_api=False,
        output_version="v0",
        disable_streaming=True,
        ask_stream=options.stream,
        body=body,
    )
    chat._redact, chat._client = redact, client
    chat.point_to(endpoint.address)
    sent = {"authorization": f"Bearer {endpoint.key or NO_KEY}", **chat.root_async_client.default_headers}
    chat._headers = {
        name: value for name, value in sent.items() if isinstance(value, str) and "stainless" not in name.lower()
    }
    return chat


async def _completion(request: httpx2.Request, response: httpx2.Response) -> Json:
    """The completion in a response, whole or streamed."""
    if response.is_error:
        await response.aread()
        text = f"Error code: {response.status_code}"
        raise httpx2.HTTPStatusError(text, request=request, response=response)
    if "event-stream" not in response.headers.get("content-type", ""):
        body = await response.aread()
        # A thread keeps the event loop free for other calls.
        return read_completion(body) if len(body) < _BIG_BYTES else await asyncio.to_thread(read_completion, body)
    listener = LISTENER.get()
    if listener is not None:
        listener(None)
    reply = StreamedReply() if listener is None else StreamedReply(listener)
    async for lines in split_lines(pieces(response)):
        for line in lines:
            reply.add(line)
    return reply.whole()
