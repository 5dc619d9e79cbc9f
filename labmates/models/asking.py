"""The one way to ask a model for an answer: call it, read the reply, and send back a reply that can't be used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from langchain_core.messages import BaseMessage

from labmates.models.objects import RefusedError, UnusableAnswerError
from labmates.models.reply import Reply

T = TypeVar("T")


@dataclass(frozen=True)
class Exchange:
    """A model's reply, and the transcript as it was really sent.

    It was shortened where the model's context asked for it, and ends with the output limit where that was stated.
    """

    reply: Reply
    sent: list[BaseMessage]


Call = Callable[[list[BaseMessage], int], Awaitable[Exchange]]
"""Makes a call with a transcript; the number counts the calls of a conversation."""
Read = Callable[[Reply, bool], T]
"""Takes a reply, and whether it is the last that will be asked for; raises `UnusableAnswerError` if it can't use it."""
Accept = Callable[[T, int], Awaitable[None]]
"""Takes a usable answer and the number of its call; raises `RefusedError` to have it changed."""
SendBack = Callable[[list[BaseMessage], Reply, UnusableAnswerError], list[BaseMessage]]
"""Adds a reply and what is wrong with it to a transcript."""
Failed = Callable[[int, str], None]
"""Told the number of a call whose reply could not be used as it was, and why."""


class Conversation:
    """A transcript with one model, and the calls that make it longer.

    Parameters
    ----------
    first
        The number of the first call.

    Attributes
    ----------
    messages
        The transcript that the next call sends.
    number
        The number of the next call.
    """

    def __init__(
        self,
        call: Call,
        messages: Sequence[BaseMessage],
        *,
        send_back: SendBack,
        failed: Failed | None = None,
        first: int = 0,
    ) -> None:
        self.messages = list(messages)
        self.number = first
        self._call = call
        self._send_back = send_back
        self._failed = failed or _ignore

    async def turn(self) -> Reply:
        """Call the model once. Faults of the reply are counted, even where the rest of it can be used."""
        exchange = await self._call(self.messages, self.number)
        self.number += 1
        self.messages = exchange.sent
        if exchange.reply.faults:
            self.fail(", ".join(exchange.reply.faults))
        return exchange.reply

    def fail(self, reason: str) -> None:
        """Count the last reply as one that could not be used as it was."""
        self._failed(self.number - 1, reason)

    def reject(self, reply: Reply, problem: UnusableAnswerError) -> None:
        """Send the last reply back with what is wrong with it."""
        if not isinstance(problem, RefusedError):
            self.fail(str(problem))
        self.messages = self._send_back(self.messages, reply, problem)

    async def ask(self, read: Read[T], *, repair_turns: int, accept: Accept[T] | None = None) -> T:
        """Call the model until `read` can use a reply and it is accepted, at most `repair_turns` more times.

        Raises
        ------
        UnusableAnswerError
            If no reply could be used; it says what was wrong with the last one.
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
        raise problem


def _ignore(number: int, reason: str) -> None:
    """Count nothing."""
