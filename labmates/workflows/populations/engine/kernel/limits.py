"""How long a decision may take: watched by a timer, at no cost to decisions that are quick.

The timer counts the processor's time of the worker. When it finds the same decision at several ticks in a row, that
decision is ended by an exception; if even that is caught, the process ends. Whoever started the worker sees when it
does not tick at all, which code in C can bring about, and kills it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from types import CodeType, FrameType

TICKS = 4
"""A decision is ended at the so many-th tick that finds it."""
_GRACE = 3
HUNG = b"\xff" * 8
"""What a worker leaves in the place of its ticks when it ends because a strategy can't be ended otherwise."""


class DecisionTimeout(BaseException):
    """A decision has taken too long. No `Exception`, so that strategies' own handlers rarely catch it."""


class Watch:
    """Watches how long decisions take.

    Parameters
    ----------
    seconds
        Processor time that a decision may take.
    beats
        A byte array that others see, in which the last tick is counted; None for nobody.
    """

    def __init__(self, seconds: float, beats: memoryview | None) -> None:
        self._seconds = seconds
        self._beats = beats
        self._codes: Collection[CodeType] = ()
        self._now: object = None
        self._seen = 0
        self._ticks = 0

    def start(self, codes: Collection[CodeType]) -> None:
        """Begin to tick.

        Parameters
        ----------
        codes
            Of the functions whose local variables ``played``, ``t`` and ``place`` name the decision that goes on.
        """
        self._codes = codes
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, self._seconds / TICKS, self._seconds / TICKS)

    def _tick(self, _signal: int, frame: FrameType | None) -> None:
        self._ticks += 1
        if self._beats is not None:
            self._beats[:8] = self._ticks.to_bytes(8, "little")
        while frame is not None and frame.f_code not in self._codes:
            frame = frame.f_back
        if frame is None:
            self._now = None
            return
        variables = frame.f_locals
        doing = variables.get("t"), variables.get("place"), id(variables.get("played"))
        if variables.get("place") is None or doing != self._now:
            self._now, self._seen = doing, 1
            return
        self._seen += 1
        if self._seen >= TICKS + _GRACE:
            if self._beats is not None:
                self._beats[:8] = HUNG
            os._exit(1)
        if self._seen > TICKS:
            raise DecisionTimeout
