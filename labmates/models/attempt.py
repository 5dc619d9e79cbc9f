"""One attempt of a model call under way: whether its request is on the wire, its clock, and the bound on its reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from labmates.models.failures import BrokenReplyError

BYTES_PER_TOKEN = 64
"""Most bytes that a token takes in a whole reply: a long word, or a rare sign as JSON escapes, and some room."""
BYTES_PER_EVENT = 1_024
"""The same in a streamed reply, where each token comes as an event with an envelope of its own."""
ENVELOPE_BYTES = 262_144
"""What a reply may hold beside its tokens."""
_MOST_STEPS = 10


class ReplyTooLongError(BrokenReplyError):
    """A reply has more bytes than its output limit can fill."""


class Attempt:
    """An attempt.

    Parameters
    ----------
    seconds
        Time limit. It counts from when the request is on the wire, and only while the event loop runs: a reply that
        has arrived while the process was busy is not late.
    output_tokens
        Output limit that the request names.
    origin
        What tells the call apart from calls of the same content: who makes it, and in which run.

    Attributes
    ----------
    is_sent
        Whether the request is on the wire, so that the provider may bill it.
    """

    def __init__(self, seconds: float, output_tokens: int, origin: str = "") -> None:
        self.is_sent = False
        self.origin = origin
        self._seconds = seconds
        self._output_tokens = output_tokens

    def most_bytes(self, *, streamed: bool) -> int:
        """The number of bytes the reply may have."""
        return ENVELOPE_BYTES + self._output_tokens * (BYTES_PER_EVENT if streamed else BYTES_PER_TOKEN)

    @asynccontextmanager
    async def under_way(self) -> AsyncIterator[asyncio.Timeout]:
        """Make this the attempt under way and start its clock; raises `TimeoutError` when the time is over."""
        loop = asyncio.get_running_loop()
        step = self._seconds / _MOST_STEPS
        waited, last = 0.0, loop.time()
        async with asyncio.timeout(None) as timer:
            ticking: asyncio.TimerHandle

            def tick() -> None:
                nonlocal waited, last, ticking
                now = loop.time()
                # A loop that was blocked has read nothing: that time does not count.
                waited += min(now - last, 1.5 * step) if self.is_sent else 0.0
                last = now
                if waited >= self._seconds:
                    timer.reschedule(now)
                else:
                    ticking = loop.call_later(step, tick)

            token = UNDER_WAY.set(self)
            tick()
            try:
                yield timer
            finally:
                UNDER_WAY.reset(token)
                ticking.cancel()


UNDER_WAY: ContextVar[Attempt | None] = ContextVar("attempt", default=None)
"""The attempt that the present task makes."""


def on_the_wire() -> None:
    """Mark the request of the attempt under way as sent."""
    if (attempt := UNDER_WAY.get()) is not None:
        attempt.is_sent = True
