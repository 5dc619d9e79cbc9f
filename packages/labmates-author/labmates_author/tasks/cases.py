"""The data sets of a task on trial."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from labmates.tasks.base import Dataset, Difficulty, Task


@dataclass(frozen=True)
class Case:
    """One data set of a task, and the bytes of its CSV file."""

    task: Task[Any, Any]
    seed: int
    difficulty: Difficulty
    data: Dataset[Any]
    csv: bytes

    @property
    def where(self) -> str:
        """The name of the data set in problems."""
        return f"seed {self.seed}, {self.difficulty}"


def fingerprint(data: Dataset[Any], csv: bytes | None = None) -> dict[str, str]:
    """Hashes of a data set by part: bytes, description and truth; a truth that is not valid JSON is omitted."""
    parts = {"data": csv or data.csv(), "description": data.description.encode()}
    with suppress(ValueError):  # the rule on the truth reports it
        parts["truth"] = data.truth.model_dump_json().encode()
    return {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}


def differing(a: dict[str, str], b: dict[str, str]) -> str:
    """The differing parts of two fingerprints, separated by commas."""
    return ", ".join(name for name in a if a[name] != b.get(name))
