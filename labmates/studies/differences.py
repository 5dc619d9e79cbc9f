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
    """One event, or one field of the run, that did not come as it was recorded.

    Attributes
    ----------
    step
        The event's step; empty for one that belongs to the run as a whole.
    type
        Its type; ``run`` for how the run ended.
    field
        What of it differs first; empty if the whole event is missing on one side.
    recorded, now
        The texts from a little before the place where they part; None where there is no such event.
    """

    step: str
    type: str
    field: str
    recorded: str | None
    now: str | None

    def __str__(self) -> str:
        where = f"the {self.type} of the step {self.step}" if self.step else f"the {self.type}"
        recorded, now = ("nothing" if text is None else text for text in (self.recorded, self.now))
        return f"{where}{self.field and f', {self.field}'}: {recorded} in the record, {now} now"


def differences_of_run(recorded: RunRecord, now: RunRecord, *, metrics: bool = True) -> Iterator[Difference]:
    """Yield differences between two records of a run's end; of metrics, if given, only these."""
    then, came = _summary(recorded, metrics), _summary(now, metrics)
    for name in sorted({*then, *came}, key=[*then, *came].index):
        # Another version may have had no such metric.
        is_new = recorded.version != __version__ and name.startswith("metrics.") and name not in then
        if not is_new and then.get(name) != came.get(name):
            yield Difference("", "run", name, *apart(then.get(name), came.get(name)))


def _summary(run: RunRecord, metrics: bool) -> dict[str, Any]:
    numbers = {f"metrics.{name}": value for name, value in run.metrics.items()} if metrics else {}
    usage = {f"usage.{name}": value for name, value in asdict(run.usage).items()}
    ended = {name: getattr(run, name) for name in ("status", "invalid", "key", "models", "budget")}
    return {**ended, **numbers, **usage}


def apart(recorded: Any, now: Any) -> tuple[str, str]:
    """Two values as texts, from a little before the point where they differ."""
    one, other = _text(recorded), _text(now)
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - _SHOWN_BEFORE)
    return one[start : same + _SHOWN_AFTER], other[start : same + _SHOWN_AFTER]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
