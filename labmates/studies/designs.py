"""What other packages tell of a study's design: what it can find, and when it may stop.

This module is light: ``labmates study run --help`` imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from labmates.registry import Registry

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.studies.spec import StudySpec


@dataclass(frozen=True)
class PlannedRuns:
    """A study as planned.

    Attributes
    ----------
    ended
        Ended runs of its kind in the store.
    planned
        A run of each condition.
    dollars
        Expected cost of all runs, in micro-dollars.
    """

    spec: StudySpec
    ended: Sequence[RunRecord]
    planned: Sequence[RunRecord]
    dollars: float


class Findable(Protocol):
    """A difference that a study can find."""

    def lines(self) -> Iterable[str]:
        """It in words."""

    def as_json(self) -> Mapping[str, Any]:
        """It as JSON data."""


PLANS: Registry[Callable[[PlannedRuns, str | None, float | None], Sequence[Findable]]] = Registry(
    "comparison", "labmates.plans"
)
"""Functions by name: what a comparison can find, of one parameter (by default all), and what finds a difference."""


@dataclass(frozen=True)
class Settled:
    """The end of a comparison after some replicates of a study; `answer` is its first sentence."""

    replicates: int
    is_told: bool
    answer: str


class Rule(Protocol):
    """A rule that stops a study early."""

    def growing(self, store: Store, spec: StudySpec) -> Iterator[StudySpec]:
        """The study with more and more replicates. Raises `UsageError` if it can't stop early."""

    def settled(self, store: Store, study: StudySpec, most: int) -> Settled | None:
        """Whether a study with the replicates so far, of `most`, may stop."""


RULES: Registry[Rule] = Registry("rule", "labmates.rules")
"""All rules by name."""
