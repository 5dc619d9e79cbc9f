"""Conversations: call a model, read the reply, and send back unusable replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass
from typing import TypeVar

from langchain_core.messages import BaseMessage

from labmates.models.objects import RefusedError, UnusableAnswerError
from labmates.models.reply import Reply

T = TypeVar("T")


@dataclass(frozen=True)
class Exchange:
    """A model's reply, and the transcript as sent: shortened to the model's context, and with a stated output limit."""

    reply: Reply
    sent: list[BaseMessage]


Call = Callable[[list[BaseMessage], int], Awaitable[Exchange]]
"""Makes a call with a transcript and the number of the call in its conversation."""
Read = Callable[[Reply, bool], T]
"""Parses a reply, given whether it is the last one; raises `UnusableAnswerError`."""
Accept = Callable[[T, int], Awaitable[None]]
"""Receives a usable answer and the number of its call; raises `RefusedError` to request a change."""
SendBack = Callable[[list[BaseMessage], Reply, UnusableAnswerError], list[BaseMessage]]
"""Adds a reply and its fault to a transcript."""
Failed = Callable[[int, str], None]
"""Receives the number of a call with an unusable reply, and the reason."""


@dataclass(eq=False)
class Conversation:
    """A conversation with one model."""

    call: Call
    messages: list[BaseMessage]  # what the next call sends
    _: KW_ONLY
    send_back: SendBack
    failed: Failed = lambda _number, _reason: None
    number: int = 0  # of the next call

    async def turn(self) -> Reply:
        """Call the model once; report faults of the reply, even if the rest is usable."""
        exchange = await self.call(self.messages, self.number)
        self.number += 1
        self.messages = exchange.sent
        if exchange.reply.faults:
            self.fail(", ".join(exchange.reply.faults))
        return exchange.reply

    def fail(self, reason: str) -> None:
        """Report the last reply as unusable."""
        self.failed(self.number - 1, reason)

    def reject(self, reply: Reply, problem: UnusableAnswerError) -> None:
        """Add the last reply and its problem to the transcript."""
        if not isinstance(problem, RefusedError):
            self.fail(str(problem))
        self.messages = self.send_back(self.messages, reply, problem)

    async def ask(self, read: Read[T], *, repair_turns: int, accept: Accept[T] | None = None) -> T:
        """Call the model until a reply is usable and accepted, with at most `repair_turns` repairs.

        Raises `UnusableAnswerError` if no reply was usable; it describes the last one's problem.
        """
        for left in range(repair_turns, -1, -1):
            reply = await self.turn()
            try:
                answer = read(reply, left == 0)
                if accept is not None:
                    await accept(answer, self.number - 1)
                return answer
            except UnusableAnswerError as error:
                self.reject(reply, error)
                problem = error
                if isinstance(error, RefusedError) and error.is_final:
                    break
        raise problem
