"""Limits on calls in flight, and on requests and tokens a minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext

from langchain_core.messages import AIMessage

from labmates.models.entries import Access

_MINUTE = 60.0


class Pace:
    """Requests and tokens a minute; a request waits until the last minute has room for it.

    Tokens are counted when a reply tells them, so that the calls in flight may go beyond the limit, once.

    Parameters
    ----------
    requests, tokens
        Most of them a minute; None without a limit.
    clock, sleep
        How time passes, in seconds.
    """

    def __init__(
        self,
        requests: int | None,
        tokens: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._sleep = sleep
        self._starts: deque[float] = deque()
        self._counts: deque[tuple[float, int]] = deque()
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Wait until a request may start."""
        async with self._turn:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._starts.append(self._clock())

    def used(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        self._counts.append((self._clock(), tokens))

    def _wait(self) -> float:
        past = self._clock() - _MINUTE
        while self._starts and self._starts[0] <= past:
            self._starts.popleft()
        while self._counts and self._counts[0][0] <= past:
            self._counts.popleft()
        waits = [0.0]
        if self._requests is not None and len(self._starts) >= self._requests:
            waits.append(self._starts[len(self._starts) - self._requests] - past)
        if self._tokens is not None and sum(count for _, count in self._counts) >= self._tokens:
            waits.append(self._counts[0][0] - past)
        return max(waits)


class Slots:
    """The limits of one model: its pace, its calls in flight, and those at its endpoint."""

    def __init__(self, endpoint: asyncio.Semaphore, access: Access) -> None:
        self._endpoint = endpoint
        self._model = asyncio.Semaphore(access.max_concurrent_calls) if access.max_concurrent_calls else nullcontext()
        limited = access.requests_per_minute or access.tokens_per_minute
        self._pace = Pace(access.requests_per_minute, access.tokens_per_minute) if limited else None

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Hold a slot for the length of an attempt."""
        # The endpoint's slot last: calls that wait for the model's own limits must not hold a slot.
        async with self._model:
            if self._pace is not None:
                await self._pace.start()
            async with self._endpoint:
                yield

    def used(self, message: AIMessage) -> None:
        """Count the tokens that a reply took."""
        if self._pace is not None and message.usage_metadata:
            self._pace.used(message.usage_metadata["total_tokens"])
