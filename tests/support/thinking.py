"""Servers that check, as the providers do, that what they attached to a reply with a tool call comes back.

A family is a provider's way to attach thoughts: what its server sends with the first call, what it wants with the
second, and its own text of the refusal. Servers answer `DONE` once all has come back.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tests.support.anthropic_server import AnthropicServer
from tests.support.cloud_server import CloudServer
from tests.support.openai_server import Answer, Call, Json, OpenAIServer, Recorded, _send, fault

THOUGHT = "The number is asked for, so I note it: seven is \N{GREEK SMALL LETTER PI} rounded, doubled and so on."
SIGNED = base64.b64encode(b"signature of the thought, opaque" * 8).decode()
NOTE = Call("note_number", {"number": 7}, "call_7")
DONE = "The number is noted."
TOOL: Json = {
    "type": "function",
    "function": {"name": "note_number", "description": "Note.", "parameters": {"type": "object", "properties": {}}},
}


@dataclass(frozen=True)
class Family:
    """A provider's way to attach thoughts.

    Attributes
    ----------
    model
        Name of the model, with a place for the base URL.
    first
        The server's reply with a tool call.
    returned
        What of a request the server checks, in order of the replies.
    wanted
        What it wants there after the first reply.
    refusal
        Its answer if that is missing.
    """

    model: str
    first: Answer
    returned: Callable[[Json], list[Any]]
    wanted: Any
    refusal: Answer
    server: type[OpenAIServer] = OpenAIServer

    def serve(self) -> OpenAIServer:
        """Return the server, not yet started; each request but the first needs what came before it."""
        server = self.server()

        def behave(request: Json, number: int) -> Answer:
            body = server.requests[number].body
            returned = self.returned(body)
            if any(part != self.wanted for part in returned):
                return self.refusal
            return Answer(text=DONE) if returned else self.first

        server._behaviour = behave
        return server


def replies(body: Json) -> Iterator[Json]:
    """Yield the replies with calls in a request of OpenAI's protocol."""
    return (message for message in body["messages"] if message["role"] == "assistant" and message.get("tool_calls"))


def _refused(text: str, status: int = 400) -> Answer:
    return fault(status, {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}})


DETAILS = [
    {"type": "reasoning.text", "text": THOUGHT, "signature": SIGNED, "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": SIGNED, "id": "rs_1", "format": "openai-responses-v1", "index": 1},
]
SIGNATURE = {"google": {"thought_signature": SIGNED}}


class _SignedCall(Call):
    def on_the_wire(self, index: int | None = None) -> Json:
        return {**super().on_the_wire(index), "extra_content": SIGNATURE}


BLOCKS = [
    {"type": "thinking", "thinking": THOUGHT, "signature": SIGNED},
    {"type": "redacted_thinking", "data": SIGNED[::-1]},
]
CHUNKS = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]
SUMMARY = [{"type": "summary_text", "text": "It is seven."}]
ITEM = {"type": "reasoning", "id": "rs_1", "summary": SUMMARY, "encrypted_content": SIGNED}
SPOKEN = {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": SIGNED}}}
PART = {"functionCall": {"name": "note_number", "args": {"number": 7}}, "thoughtSignature": SIGNED}


def _blocks(body: Json) -> list[Any]:
    said = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    return [[block for block in blocks if block["type"] not in ("text", "tool_use")] for blocks in said]


def _parts(body: Json) -> list[Any]:
    said = [content["parts"] for content in body["contents"] if content["role"] == "model"]
    return [
        {"functionCall": {name: call[name] for name in ("name", "args")}, "thoughtSignature": part["thoughtSignature"]}
        for parts in said
        for part in parts
        if (call := part.get("functionCall"))
    ]


def _spoken(body: Json) -> list[Any]:
    return [message["content"][0] for message in body["messages"] if message["role"] == "assistant"]


def _items(body: Json) -> list[Any]:
    """The items before the calls of functions."""
    items = body["input"]
    return [items[place - 1] for place, item in enumerate(items) if item.get("type") == "function_call"]


class ResponsesServer(OpenAIServer):
    """OpenAI's responses."""

    async def _respond(self, recorded: Recorded, writer: Any) -> bool:
        self.requests.append(recorded)
        answer = await self._answer(recorded.body, len(self.requests) - 1)
        if answer.status != 200:
            return await _send(writer, answer)
        call = {"type": "function_call", "id": "fc_1", "call_id": NOTE.id, "name": NOTE.name, "status": "completed"}
        part = {"type": "output_text", "text": DONE, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        output = [ITEM, {**call, "arguments": json.dumps(NOTE.arguments)}] if answer.calls else [message]
        usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 4}}
        whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
        more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "output": output}
        return await _send(writer, Answer(body={**whole, **more, "usage": {**usage, **details}}))


AWS = {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}
FAMILIES = {
    "deepseek": Family(
        "openai:deepseek-v4?base_url={url}",
        Answer(text="", calls=(NOTE,), reasoning=THOUGHT),
        lambda body: [message.get("reasoning_content") for message in replies(body)],
        THOUGHT,
        _refused("The `reasoning_content` in the thinking mode must be passed back to the API."),
    ),
    "openrouter": Family(
        "openai:anthropic/claude-x?base_url={url}",
        Answer(text="", calls=(NOTE,), message={"reasoning": THOUGHT, "reasoning_details": DETAILS}),
        lambda body: [message.get("reasoning_details") for message in replies(body)],
        DETAILS,
        _refused("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
    ),
    "gemini-compatible": Family(
        "openai:gemini-3-pro?base_url={url}",
        Answer(text="", calls=(_SignedCall(NOTE.name, NOTE.arguments, NOTE.id),)),
        lambda body: [call.get("extra_content") for message in replies(body) for call in message["tool_calls"]],
        SIGNATURE,
        _refused("Function call is missing a thought_signature in functionCall parts."),
    ),
    "mistral": Family(
        "openai:magistral-medium?base_url={url}",
        Answer(text=[*CHUNKS, {"type": "text", "text": "Noting."}], calls=(NOTE,)),
        lambda body: [message["content"][:1] for message in replies(body)],
        CHUNKS,
        _refused("the thinking of the last reply is missing"),
    ),
    "azure": Family(
        "azure_openai:deepseek-v4",
        Answer(text="", calls=(NOTE,), reasoning=THOUGHT),
        lambda body: [message.get("reasoning_content") for message in replies(body)],
        THOUGHT,
        _refused("The `reasoning_content` in the thinking mode must be passed back to the API."),
    ),
    "anthropic": Family(
        "anthropic:claude-haiku-4-5?base_url={url}&thinking_budget=2048",
        Answer(text="Noting.", calls=(NOTE,), message={"blocks": BLOCKS}),
        _blocks,
        BLOCKS,
        fault(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                    "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
                    "block (preceding the lastmost set of `tool_use` and `tool_result` blocks).",
                },
            },
        ),
        AnthropicServer,
    ),
    "gemini": Family(
        "google_genai:gemini-3-pro?base_url={url}&thinking_budget=512",
        Answer(
            text="",
            calls=(NOTE,),
            message={"blocks": [{"text": THOUGHT, "thought": True}], "signed": {"thoughtSignature": SIGNED}},
            usage={"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18},
        ),
        _parts,
        PART,
        fault(
            400,
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": "Function call is missing a thought_signature in functionCall parts. This is required "
                    "for tools to work correctly, and missing thought_signature may lead to degraded model "
                    "performance. Additional data, function call `default_api:note_number`, position 2.",
                }
            },
        ),
        CloudServer,
    ),
    "bedrock": Family(
        "bedrock_converse:anthropic.claude-x?base_url={url}&thinking_budget=2048",
        Answer(text="Noting.", calls=(NOTE,), message={"blocks": [SPOKEN]}, usage=AWS),
        _spoken,
        SPOKEN,
        fault(
            400,
            {
                "message": "The model returned the following errors: messages.1.content.0.type: Expected `thinking` or "
                "`redacted_thinking`, but found `tool_use`."
            },
        ),
        CloudServer,
    ),
    "responses": Family(
        "responses",
        Answer(calls=(NOTE,)),
        _items,
        ITEM,
        _refused("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."),
        ResponsesServer,
    ),
}
Serving = AbstractContextManager[OpenAIServer]
