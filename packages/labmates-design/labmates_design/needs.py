"""What a comparison needs to find a given difference: seeds, models or tasks, with their dollars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

from labmates.errors import UsageError, unknown_name
from labmates.stats.domains import Domain
from labmates.stats.paired import fewest
from labmates_design.power import POWER, power

MOST: Final = 200
"""Most seeds, models or tasks that are tried."""


@dataclass(frozen=True)
class Need:
    """How many of something find a difference with 80 % power, all else as in the study.

    Attributes
    ----------
    has, needs
        The study's number, and the fewest that do; None if no number up to `MOST` does.
    dollars
        Expected cost of all runs of such a study, in micro-dollars.
    """

    what: str
    has: int
    needs: int | None
    dollars: int | None


@dataclass(frozen=True)
class Design:
    """A comparison as planned: the spread of a block's difference by task, and the numbers that can be changed."""

    spreads: Sequence[float]
    seeds: int
    models: int
    domain: Domain
    pairs: int
    dollars: float

    def needed(self, difference: float) -> list[Need]:
        """What finds a difference, by the verdict of ``labmates compare``.

        Models share data sets: more of them average their noise, and are no further units. None are planned if models
        are compared. Further tasks are taken as varied as the study's.
        """
        tasks = len(self.spreads)
        ways: dict[str, tuple[int, Callable[[int], tuple[Sequence[float], int]]]] = {
            "seeds": (self.seeds, lambda number: (self.spreads, number)),
            "tasks": (tasks, lambda number: (tuple(islice(cycle(self.spreads), number)), self.seeds)),
        }
        if self.models:
            ways["models"] = (
                self.models,
                lambda number: ([each * math.sqrt(self.models / number) for each in self.spreads], self.seeds),
            )

        def need(what: str, has: int, of: Callable[[int], tuple[Sequence[float], int]]) -> Need:
            least = fewest(lambda n: power(difference, *of(n), self.domain, self.pairs) >= POWER, 0, MOST)
            return Need(what, has, least, None if least is None else round(self.dollars * least / has))

        return [need(what, *way) for what, way in ways.items()]


def parameter_of(text: str) -> str:
    """The parameter of ``compare PARAMETER``, without its first word; a `UsageError` for another text."""
    name = text.removeprefix("--by ").strip()
    if not name or " " in name:
        raise UsageError(f"--for takes 'compare PARAMETER', for instance 'compare organisation', not 'compare {text}'")
    return name


def check(parameter: str, compared: Sequence[str]) -> None:
    """Raise a `UsageError` unless a study compares a parameter."""
    if not compared:
        raise UsageError("--for: no comparison of this study can be planned: nothing varies, or no spread is known")
    if parameter not in compared:
        raise unknown_name("compared parameter", parameter, compared)
