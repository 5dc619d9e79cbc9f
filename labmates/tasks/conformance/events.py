"""Events of the conformance test, and the inputs of its rules."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from labmates.tasks.base import Dataset, Difficulty, Task

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """A violation of a rule by a task.

    Attributes
    ----------
    rule
        Name of the rule, for instance ``"score"``.
    text
        Description of the problem.
    severity
        An ``"error"`` must be fixed; a ``"warning"`` should be examined.
    where
        The data set, for instance ``"seed 0, easy"``; empty for all.
    """

    rule: str
    text: str
    severity: Severity = "error"
    where: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}{f' ({self.where})' if self.where else ''}"


@dataclass(frozen=True)
class Step:
    """The next check: a rule, and the data set (empty for all)."""

    rule: str
    where: str


@dataclass(frozen=True)
class Fingerprint:
    """Hashes of a seed's data set, by part (``data``, ``description``, ``truth``)."""

    where: str
    parts: dict[str, str]


Event = Problem | Step | Fingerprint


@dataclass(frozen=True)
class Mild:
    """A problem of severity ``"warning"``."""

    text: str


@dataclass(frozen=True)
class Case:
    """One data set of a task, and the bytes of its CSV file."""

    task: Task[Any, Any]
    seed: int
    difficulty: Difficulty
    data: Dataset[Any]
    csv: bytes


def place(seed: int, difficulty: Difficulty) -> str:
    """The name of a data set in problems."""
    return f"seed {seed}, {difficulty}"


def fingerprint(where: str, data: Dataset[Any], csv: bytes | None = None) -> Fingerprint:
    """Hashes of a data set's bytes, description and truth; a truth that is not valid JSON is omitted."""
    parts = {"data": csv or data.csv(), "description": data.description.encode()}
    with suppress(ValueError):  # the rule on the truth reports it
        parts["truth"] = data.truth.model_dump_json().encode()
    return Fingerprint(where, {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()})


def differing(a: dict[str, str], b: dict[str, str]) -> str:
    """The differing parts of two fingerprints, separated by commas."""
    return ", ".join(name for name in a if a[name] != b.get(name))
