"""Work that must not be cut off in the middle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do `work` to its end, even if cancelled meanwhile, once or more often; the cancellation follows then.

    An error that `work` ends with after that is logged.
    """
    doing = asyncio.create_task(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({doing})
        if not doing.cancelled() and (error := doing.exception()) is not None:
            _log.warning("work in progress failed after a cancellation: %s", error)
        raise
