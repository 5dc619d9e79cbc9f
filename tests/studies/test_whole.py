from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from labmates.util.loops import to_its_end


@pytest.mark.parametrize("fails", [False, True])
async def test_work_ends_however_often_it_is_cancelled_and_its_error_bothers_nobody(fails: bool) -> None:
    begun, may_end, ended, complaints = asyncio.Event(), asyncio.Event(), [], list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def work() -> None:
        begun.set()
        await may_end.wait()
        ended.append(True)
        if fails:
            raise ValueError("too late")

    doing = asyncio.create_task(to_its_end(work()))
    await begun.wait()
    for _ in range(3):
        doing.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not doing.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await doing
    gc.collect()
    assert (ended, complaints) == ([True], [])


async def test_what_the_work_returns_or_raises_is_passed_on() -> None:
    async def fail() -> None:
        raise ValueError("at once")

    assert await to_its_end(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="at once"):
        await to_its_end(fail())
