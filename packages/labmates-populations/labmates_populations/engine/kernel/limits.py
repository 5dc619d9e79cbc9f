"""The time limit of a decision: a timer without costs for quick decisions.

The timer measures the process's processor time. If a decision lasts several ticks, or all decisions of a player twice
as many, an exception ends the decision; if the strategy catches it, the process exits. A strategy whose players
together exceed the limit of `MOST_SPENT` players makes no further decisions. Code in C can block the timer; the engine
then kills the process.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from types import FrameType

TICKS = 4
"""Maximum number of ticks per decision; the limit for all decisions of a player is twice as high."""
MOST_SPENT = 3
"""After this number of players beyond the limit of time or memory, a strategy is not run for the rest of the batch."""
_GRACE = 3
PLACE, BEATS = 0, 1
"""Indices in the shared memory, in units of 8 bytes, of the deciding player (-1: none) and the number of ticks."""
MARKS = 2
HUNG = -1
"""Value of the ticks when a process exits because a strategy can't be interrupted."""


class DecisionTimeout(BaseException):
    """A decision has taken too long. Not an `Exception`, so strategies' own handlers rarely catch it."""


class Watch:
    """Limits the processor time of decisions to `seconds`; `marks` is shared memory of `MARKS` numbers."""

    def __init__(self, seconds: float, marks: memoryview) -> None:
        self.decisions = 0
        self.strategies: dict[int, int] = {}
        """The strategy of each player."""
        self._marks = marks
        self._now: tuple[int, int] = (-1, -1)
        self._seen = 0
        self._used: Counter[int] = Counter()
        self._used_by: Counter[int | None] = Counter()
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, seconds / TICKS, seconds / TICKS)

    def begin(self) -> None:
        """Reset the usage of players for a new batch."""
        self._used.clear()
        self._used_by.clear()
        self.strategies.clear()

    def _tick(self, _signal: int, _frame: FrameType | None) -> None:
        self._marks[BEATS] += 1
        place = self._marks[PLACE]
        now = place, self.decisions
        self._seen = self._seen + 1 if now == self._now else 1
        self._now = now
        if place < 0:
            return
        strategy = self.strategies.get(place)
        self._used[place] += 1
        self._used_by[strategy] += 1
        if self._seen >= TICKS + _GRACE:
            self._marks[BEATS] = HUNG
            os._exit(1)
        alone, together = 2 * TICKS, 2 * TICKS * MOST_SPENT
        if self._seen > TICKS or self._used[place] > alone or self._used_by[strategy] > together:
            raise DecisionTimeout
