"""Trying a failed call again, with waits that grow and that repeat for the same seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from labmates.models.failures import AttemptError, Failure
from labmates.seeds import derive

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """How long to wait before the next attempt, in seconds.

    Attributes
    ----------
    first
        Wait after the first failure; it doubles with each further one.
    longest
        Longest wait of our own.
    longest_asked
        Longest wait that a server's ``Retry-After`` can impose: a server that asks for more is tried again
        after this long.
    """

    first: float = 0.5
    longest: float = 30.0
    longest_asked: float = 120.0

    def delay(self, seed: int, failures: int, retry_after: float | None = None) -> float:
        """Return the wait after so many `failures` in a row.

        Our own waits are spread over [50 %, 100 %]; one that the server asked for is never shortened (but for
        `longest_asked`) and lengthened by up to 10 %, so that callers refused together don't return together.
        """
        share = random.Random(derive(seed, "retry", failures)).random()
        if retry_after is not None:
            asked = min(retry_after, self.longest_asked)
            return asked + 0.1 * share * (asked + self.first)
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 32)) * (0.5 + 0.5 * share)


async def persist(
    attempt: Callable[[], Awaitable[T]], *, max_retries: int, seed: int, backoff: Backoff, failures: list[Failure]
) -> T:
    """Call `attempt` until it succeeds, is refused, or has failed ``1 + max_retries`` times.

    Parameters
    ----------
    attempt
        Raises `AttemptError` on failure. It takes and frees its slot at the endpoint itself, so that none is
        held here while waiting.
    max_retries
        Attempts after the first one.
    seed
        Seed of the waits.
    backoff
        Length of the waits.
    failures
        Failed attempts are added to it, in order, also when it ends well.

    Raises
    ------
    AttemptError
        The last failure.
    """
    failed = 0
    while True:
        try:
            return await attempt()
        except AttemptError as error:
            failed += 1
            failures.append(error.failure)
            if error.failure.kind != "retry" or failed > max_retries:
                raise
        await asyncio.sleep(backoff.delay(seed, failed, failures[-1].retry_after))
