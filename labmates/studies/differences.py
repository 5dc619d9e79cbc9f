"""Differences between a run's record and its repeated execution."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from labmates._version import __version__
from labmates.records.run import RunRecord

_SHOWN_BEFORE, _SHOWN_AFTER = 40, 120


@dataclass(frozen=True)
class Difference:
    """A difference of an event or a field of the run from the record."""

    step: str  # empty for the run as a whole
    type: str  # of the event; ``run`` for the end of the run
    field: str  # the first different field; empty if the event is missing on one side
    recorded: str | None  # the text from shortly before the difference; None for a missing event
    now: str | None

    def __str__(self) -> str:
        where = f"the {self.type} of the step {self.step}" if self.step else f"the {self.type}"
        recorded, now = ("nothing" if text is None else text for text in (self.recorded, self.now))
        return f"{where}{self.field and f', {self.field}'}: {recorded} in the record, {now} now"


def differences_of_run(recorded: RunRecord, now: RunRecord, *, metrics: bool = True) -> Iterator[Difference]:
    """Yield differences between two records of a run's end, with or without metrics."""
    before, after = _summary(recorded, metrics), _summary(now, metrics)
    for name in sorted({*before, *after}, key=[*before, *after].index):
        # Another version may lack the metric.
        is_older = recorded.made is None or recorded.version != __version__
        is_new = is_older and name.startswith("metrics.") and name not in before
        if not is_new and before.get(name) != after.get(name):
            yield Difference("", "run", name, *apart(before.get(name), after.get(name)))


def _summary(run: RunRecord, metrics: bool) -> dict[str, Any]:
    numbers = {f"metrics.{name}": value for name, value in run.metrics.items()} if metrics else {}
    # Records of earlier versions lack the uncertain part, which follows from the charges.
    usage = {f"usage.{name}": value for name, value in asdict(run.usage).items() if name != "uncertain"}
    ended = {name: getattr(run, name) for name in ("status", "invalid", "key", "models", "budget")}
    return {**ended, **numbers, **usage}


def apart(recorded: Any, now: Any) -> tuple[str, str]:
    """Two values as texts, from shortly before their first difference."""
    before, after = _text(recorded), _text(now)
    pairs = enumerate(zip(before, after, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(0, same - _SHOWN_BEFORE)
    return before[start : same + _SHOWN_AFTER], after[start : same + _SHOWN_AFTER]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
