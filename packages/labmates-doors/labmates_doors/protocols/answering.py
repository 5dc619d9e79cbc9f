"""Replies of models behind another protocol, whole or streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Final
from uuid import uuid4

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from labmates.models.marks import CLOSE, OPEN
from labmates.models.reply import Piece, Reply, listening
from labmates_doors.protocols.base import Json, Prompt, Protocol, RefusedRequestError, Writer

_MARKS: Final = ("<think>", "<thinking>", "</think>", "</thinking>", "[think]", "[/think]")
_BROKEN: Final = "the reply broke off and was requested again from the provider; retry"


class PassedStream(StreamingResponse):
    """A stream that closes as soon as the client disconnects."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; starlette's task group would cost more than the rest."""
        sending, is_left, is_sent = asyncio.current_task(), False, False
        assert sending is not None

        def leave(watching: asyncio.Task[None]) -> None:
            nonlocal is_left
            if not is_sent and not watching.cancelled():
                is_left = sending.cancel()

        watching = asyncio.create_task(self.listen_for_disconnect(receive))
        watching.add_done_callback(leave)
        try:
            async with aclosing(self.body_iterator):  # type: ignore[type-var]
                await self.stream_response(send)
        except asyncio.CancelledError:
            if not is_left or sending.uncancel():
                raise
        finally:
            is_sent = True
            watching.cancel()


async def answer(
    protocol: Protocol, body: Json, prompt: Prompt, model: str, asking: Callable[[], Awaitable[Reply]]
) -> Response:
    """The response to a request; `model` is the name in it.

    An exception of `asking`, the call of the model, is raised here if it comes before the first part of a stream.
    """
    if not body.get("stream"):
        whole = protocol.reply(prompt.ended(await asking()), model)
        content = json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")
        return Response(content, media_type="application/json")
    passage = Passage(protocol, body, prompt, model)
    parts = passage.parts(asking)
    first = await anext(parts)

    async def stream() -> AsyncGenerator[bytes]:
        async with aclosing(parts):
            yield first
            async for part in parts:
                yield part

    return PassedStream(stream(), media_type="text/event-stream")


@lru_cache(maxsize=64)
def _beginnings(stops: tuple[str, ...]) -> tuple[frozenset[str], int]:
    """The incomplete marks and stop texts, and the length of the longest."""
    words = (*_MARKS, *(stop.lower() for stop in stops))
    return frozenset(word[:n] for word in words for n in range(1, len(word))), max(map(len, words)) - 1


class Passage:
    """A streamed reply on its way to a program: each part is sent as soon as it is final.

    Reasoning between marks is left out, and so is everything after a stop text. The rest follows when the reply is
    complete.
    """

    def __init__(self, protocol: Protocol, body: Json, prompt: Prompt, model: str) -> None:
        self._protocol, self._prompt, self._model = protocol, prompt, model
        self._writer: Writer = protocol.writer(model, body)
        self._beginnings, self._longest = _beginnings(tuple(prompt.stop))
        self._has_begun = False
        self._text = ""  # received, not yet sent
        self._sent: list[str] = []
        self._calls = 0
        self._is_held = False  # no more text before the end
        self._is_broken = False

    async def parts(self, asking: Callable[[], Awaitable[Reply]]) -> AsyncGenerator[bytes]:
        """The parts of the stream; an error after the first part ends it."""
        waiting: list[Piece | None] = []
        news = asyncio.Event()

        def take(piece: Piece | None) -> None:
            waiting.append(piece)
            news.set()

        with listening(take):
            task = asyncio.ensure_future(asking())
        task.add_done_callback(lambda _: news.set())
        try:
            is_whole = False
            while not is_whole:
                await news.wait()
                news.clear()
                is_whole = task.done()
                pieces, waiting[:] = waiting.copy(), []
                if part := self._passed(pieces):
                    yield part
            yield self._ended(await task)
        except RefusedRequestError as error:
            if not self._has_begun:
                raise
            yield self._writer.failed(self._protocol.error(error.status, str(error)))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _passed(self, pieces: Sequence[Piece | None]) -> bytes:
        """The next part; text that arrived in several pieces is written at once."""
        parts = []
        for piece in pieces:
            if piece is None:
                self._is_broken = self._has_begun
                self._text = ""
            elif piece.kind == "text":
                self._text += piece.text
            elif piece.kind == "call":
                parts += [self._settled_text(), self._call(piece)]
        return b"".join([*parts, self._settled_text()])

    def _settled_text(self) -> bytes:
        """Send the final part of the text, without white space around the reply."""
        if self._is_held or self._is_broken or not self._text:
            return b""
        text = self._text if self._sent else self._text.lstrip()
        ends = [match.start() for mark in (OPEN, CLOSE) if (match := mark.search(text))]
        ends += [place for stop in self._prompt.stop if (place := text.find(stop)) >= 0]
        self._is_held = bool(ends)
        settled = text[: min(ends, default=len(text) - self._begun_word(text))].rstrip()
        self._text = text[len(settled) :]
        return self._write_text(settled)

    def _begun_word(self, text: str) -> int:
        """The length of an incomplete mark or stop text at the end of a text."""
        end = text[-self._longest :].lower()
        return next((len(end) - n for n in range(len(end)) if end[n:] in self._beginnings), 0)

    def _write_text(self, text: str) -> bytes:
        if not text:
            return b""
        self._sent.append(text)
        return self._begun() + self._writer.text(text)

    def _call(self, piece: Piece) -> bytes:
        if self._is_held or self._is_broken or (self._prompt.one_call and piece.number > 0):
            return b""
        if piece.number == self._calls and piece.name:
            self._calls += 1
            begun = self._begun() + self._writer.call(
                piece.id or f"call_{uuid4().hex}", self._prompt.placed(piece.name)
            )
            return begun + (self._writer.arguments(piece.text) if piece.text else b"")
        if piece.number != self._calls - 1:
            self._is_broken = self._has_begun
            return b""
        return self._writer.arguments(piece.text) if piece.text else b""

    def _begun(self) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        return self._writer.begin()

    def _ended(self, whole: Reply) -> bytes:
        """The rest of the reply, and the end."""
        reply, sent = self._prompt.ended(whole), "".join(self._sent)
        if self._is_broken:
            return self._writer.failed(self._protocol.error(502, _BROKEN))
        parts = [self._begun()]
        if not sent.startswith(reply.text):
            # If the end reveals that the beginning was reasoning, the whole reply follows.
            rest = reply.text[len(sent) :] if reply.text.startswith(sent) else f"\n\n{reply.text}"
            parts.append(self._write_text(rest))
        for call in reply.tool_calls[self._calls :]:
            parts += [self._writer.call(call.id, call.name), self._writer.arguments(json.dumps(call.arguments))]
        return b"".join([*parts, self._writer.end(self._protocol.reply(reply, self._model))])
