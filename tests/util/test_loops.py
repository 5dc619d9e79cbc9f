"""Work that is done in batches: what comes together is one call, and each caller gets its own result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

from labmates.util.loops import Batches


async def test_items_that_come_together_or_while_others_are_worked_on_are_one_call() -> None:
    calls: list[list[int]] = []
    begun, goes_on = Event(), Event()

    def work(items: Sequence[int]) -> list[int | Exception]:
        calls.append(list(items))
        begun.set()
        goes_on.wait(100)
        return [item * item if item else ValueError("nothing") for item in items]

    batches = Batches(work)
    first = [asyncio.create_task(batches.result(item)) for item in (1, 0, 2)]
    assert await asyncio.to_thread(begun.wait, 100)
    later = [asyncio.create_task(batches.result(item)) for item in (3, 4)]
    await asyncio.sleep(0)
    later[0].cancel()  # what was submitted is worked on nevertheless
    goes_on.set()
    results = await asyncio.gather(*first, *later, return_exceptions=True)
    assert calls == [[1, 0, 2], [3, 4]]
    assert [results[0], results[2], results[4]] == [1, 4, 16]
    assert isinstance(results[1], ValueError)
    assert isinstance(results[3], asyncio.CancelledError)


async def test_work_that_fails_fails_for_all_its_items_and_for_no_later_ones() -> None:
    def work(items: Sequence[int]) -> list[float]:
        return [1 / item for item in items]

    batches = Batches(work)
    results = await asyncio.gather(batches.result(0), batches.result(1), return_exceptions=True)
    assert [type(result) for result in results] == [ZeroDivisionError] * 2
    assert await batches.result(2) == 0.5
