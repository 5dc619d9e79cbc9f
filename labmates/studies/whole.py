"""Work that must not be cut off in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do `work` to its end, even if cancelled meanwhile, once or more often; the cancellation follows then.

    An error that `work` ends with after that is dropped.
    """
    doing = asyncio.create_task(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({doing})
        if not doing.cancelled():
            doing.exception()  # else asyncio would complain that nobody has looked at it
        raise
