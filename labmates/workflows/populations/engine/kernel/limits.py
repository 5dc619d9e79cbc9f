"""The time limit of a decision: a timer that costs quick decisions nothing.

The timer counts the processor's time of the process. When it finds the same decision at several ticks, or the same
player at twice as many, the decision is ended by an exception; if even that is caught, the process ends. So is each
further decision of a strategy whose players together have used up what `MOST_SPENT` of them may take. Whoever asked for
the decision sees when the process does not tick at all, which code in C can bring about, and kills it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from types import FrameType

TICKS = 4
"""A decision is ended at the so many-th tick that finds it; a player has twice as many for all its decisions."""
MOST_SPENT = 3
"""Once so many players of a strategy have taken too long or too much memory in a batch, it is run no more there."""
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
        """Forget what players have used: others sit in their places."""
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
