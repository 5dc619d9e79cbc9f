"""Requests and tokens a minute, by a clock that the test moves."""

from __future__ import annotations

from labmates.models.connection import Pace


async def test_a_request_waits_until_the_last_minute_has_room_for_it() -> None:
    now = [0.0]
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    pace = Pace(2, None, clock=lambda: now[0], sleep=sleep)
    for _ in range(5):
        await pace.start()
        now[0] += 1.0
    assert waits == [58.0, 58.0]
    pace = Pace(None, 100, clock=lambda: now[0], sleep=sleep)
    await pace.start()
    pace.used(100)
    await pace.start()
    assert waits[2:] == [60.0]
