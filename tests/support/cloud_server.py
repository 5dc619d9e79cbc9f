"""A real HTTP server that speaks the protocols of Google's Gemini (generateContent) and Amazon Bedrock (converse)."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import Iterator

from tests.support.openai_server import Answer, Json, OpenAIServer, Recorded, _send, fault


class CloudServer(OpenAIServer):
    """The server; behaviours get the requests as they arrive, and usage is given in the words of the protocol."""

    @property
    def base_url(self) -> str:
        """What a client takes as base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def _respond(self, recorded: Recorded, writer: asyncio.StreamWriter) -> bool:
        path = recorded.path.partition("?")[0]
        is_google = path.endswith((":generateContent", ":streamGenerateContent"))
        shape = google if is_google else bedrock if path.endswith(("/converse", "/converse-stream")) else None
        if shape is None:
            return await _send(writer, fault(404, {"message": "not found"}))
        number = len(self.requests)
        self.requests.append(recorded)
        answer = await self._answer(recorded.body, number)
        whole = answer.body is not None or answer.status != 200
        if path.endswith(":streamGenerateContent") and not whole:
            body = "".join(f"data: {json.dumps(event)}\n\n" for event in google_events(answer))
            return await _send(writer, Answer(body=body, headers={"content-type": "text/event-stream"}))
        if path.endswith("/converse-stream") and not whole:
            data = b"".join(_framed(kind, event) for kind, event in bedrock_events(answer))
            return await _send(
                writer, Answer(body=data, headers={"content-type": "application/vnd.amazon.eventstream"})
            )
        return await _send(writer, answer if whole else Answer(body=shape(answer)))


def google(answer: Answer) -> Json:
    """Return an answer as Gemini has it."""
    parts: list[Json] = [*answer.message.get("blocks", ())]
    parts += [{"text": answer.text}] if answer.text else []
    signed = answer.message.get("signed", {})
    parts += [
        {"functionCall": {"name": call.name, "args": _arguments(call.arguments)}, **signed} for call in answer.calls
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": answer.finish or "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": answer.usage}


def google_events(answer: Answer) -> Iterator[Json]:
    """Yield an answer as Gemini streams it: an event for each part."""
    whole = google(answer)
    [candidate] = whole["candidates"]
    for part in candidate["content"]["parts"]:
        content = {"role": "model", "parts": [part]}
        yield {"candidates": [{"content": content, "index": 0}]}
    yield {**whole, "candidates": [{**candidate, "content": {"role": "model", "parts": []}}]}


def bedrock(answer: Answer) -> Json:
    """Return an answer as Bedrock's converse has it."""
    content: list[Json] = [*answer.message.get("blocks", ())]
    content += [{"text": answer.text}] if answer.text else []
    content += [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": _arguments(call.arguments)}}
        for call in answer.calls
    ]
    reason = answer.finish or ("tool_use" if answer.calls else "end_turn")
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": reason, "usage": answer.usage, "metrics": {"latencyMs": 1}}


def bedrock_events(answer: Answer) -> Iterator[tuple[str, Json]]:
    """Yield an answer as Bedrock streams it."""
    whole = bedrock(answer)
    yield "messageStart", {"role": "assistant"}
    for number, block in enumerate(whole["output"]["message"]["content"]):
        [(kind, value)] = block.items()
        deltas: list[Json] = [block]
        if kind == "toolUse":
            start = {"toolUse": {name: value[name] for name in ("toolUseId", "name")}}
            yield "contentBlockStart", {"contentBlockIndex": number, "start": start}
            deltas = [{"toolUse": {"input": json.dumps(value["input"])}}]
        elif kind == "reasoningContent":
            deltas = [{kind: {name: text}} for name, text in value["reasoningText"].items()]
        for delta in deltas:
            yield "contentBlockDelta", {"contentBlockIndex": number, "delta": delta}
        yield "contentBlockStop", {"contentBlockIndex": number}
    yield "messageStop", {"stopReason": whole["stopReason"]}
    yield "metadata", {"usage": whole["usage"], "metrics": whole["metrics"]}


def _framed(kind: str, event: Json) -> bytes:
    """A message of Amazon's event streams: lengths, headers and payload, each part with its checksum."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in named.items()
    )
    payload = json.dumps(event).encode()
    begun = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    begun += struct.pack(">I", zlib.crc32(begun)) + headers + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


def _arguments(arguments: object) -> object:
    return json.loads(arguments) if isinstance(arguments, str) else arguments
