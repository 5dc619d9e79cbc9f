"""The time limit of a decision: a timer that costs quick decisions nothing.

The timer counts the processor's time of the process. When it finds the same decision at several ticks, or the same
player at twice as many, the decision is ended by an exception; if even that is caught, the process ends. Whoever asked
for the decision sees when the process does not tick at all, which code in C can bring about, and kills it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from types import FrameType

TICKS = 4
"""A decision is ended at the so many-th tick that finds it; a player has twice as many for all its decisions."""
_GRACE = 3
PLACE, BEATS = 0, 1
"""Where in the shared memory, in numbers of 8 bytes, the deciding player (-1: none) and the number of ticks stand."""
MARKS = 2
HUNG = -1
"""Stands for ticks when a process ends because a strategy can't be ended otherwise."""


class DecisionTimeout(BaseException):
    """A decision has taken too long. No `Exception`, so that strategies' own handlers rarely catch it."""


class Watch:
    """Watches how long decisions take.

    Parameters
    ----------
    seconds
        Processor time that a decision may take.
    marks
        Shared memory of `MARKS` numbers.
    """

    def __init__(self, seconds: float, marks: memoryview) -> None:
        self.decisions = 0
        self._marks = marks
        self._now: tuple[int, int] = (-1, -1)
        self._seen = 0
        self._used: Counter[int] = Counter()
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, seconds / TICKS, seconds / TICKS)

    def begin(self) -> None:
        """Forget what players have used: others sit in their places."""
        self._used.clear()

    def _tick(self, _signal: int, _frame: FrameType | None) -> None:
        self._marks[BEATS] += 1
        place = self._marks[PLACE]
        now = place, self.decisions
        self._seen = self._seen + 1 if now == self._now else 1
        self._now = now
        if place < 0:
            return
        self._used[place] += 1
        if self._seen >= TICKS + _GRACE:
            self._marks[BEATS] = HUNG
            os._exit(1)
        if self._seen > TICKS or self._used[place] > 2 * TICKS:
            raise DecisionTimeout
