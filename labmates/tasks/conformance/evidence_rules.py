"""The rule on a task's instruments: how its evidence is divided, and what it takes to put it together again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from labmates.tasks.base import csv_bytes
from labmates.tasks.conformance.data_rules import text_values
from labmates.tasks.conformance.events import Case, Mild
from labmates.tasks.evidence import Instruments, Part, closed_shares, divide
from labmates.tasks.restoring import Keys

LEAST_INSTRUMENTS = 3
KEYS_MOST = 5_000
"""Most characters of what one holder hands over."""
STEP_MOST = 0.45
"""Largest gap between the splits that a data set allows."""
NEAR = 0.05
"""Tolerance for the mean of a restored column's middle values, as a share of the original's range."""


def instruments(case: Case) -> Iterator[str | Mild]:
    """Check how the evidence of one data set is divided; a task without instruments passes."""
    declared = case.task.instruments
    if declared is None:
        return
    if not isinstance(declared, Instruments):
        yield f"'instruments' must be an instance of Instruments, not {type(declared).__name__}"
        return
    if len(declared.about) < LEAST_INSTRUMENTS or declared.explains not in declared.about:
        yield f"'about' must describe at least {LEAST_INSTRUMENTS} instruments, and 'explains' must name one of them"
        return
    units = declared.units(case.data)
    if len(set(units)) != len(units) or len(units) < 2:
        yield "'units' must give at least two names, each once"
        return
    shares = closed_shares(case.task, case.data.truth, units)
    steps = [after - before for before, after in pairwise(shares)]
    if max(steps) > STEP_MOST:
        yield Mild(f"closing one unit closes {max(steps):.2f} of the credit, so splits in between can't be had")
    split, again = (divide(case.task, case.seed, case.difficulty, 1.0) for _ in range(2))
    if any(not one.frame.equals(other.frame) for one, other in zip(split, again, strict=True)):
        yield "the same seed gave other parts"
    yield from _spoilers(case, split[0])
    yield from _union(case, declared, split)


def _spoilers(case: Case, readings: Part) -> Iterator[str]:
    """Look for names from the truth in what the holder of the readings gets at split 1."""
    text = f"{readings.frame.to_csv(index=False)}\n{readings.description}".lower()
    names = {name for name in text_values(case.data.truth.model_dump(mode="json")) if len(name) > 3}
    for name in sorted(names):
        if name.lower() in text and name not in case.task.brief:
            yield f"at split 1 the instrument '{readings.instrument}' reveals '{name}' of the truth"


def _union(case: Case, declared: Instruments[Any, Any], split: Sequence[Part]) -> Iterator[str]:
    """Check that the keys of the others restore the table of the first instrument, and that nothing else does."""
    frames = [pd.read_csv(io.BytesIO(part.csv())) for part in split]
    keys: list[Keys] = [json.loads(json.dumps(declared.hand_over(frame))) for frame in frames]
    for part, given in zip(split, keys, strict=True):
        if len(json.dumps(given)) > KEYS_MOST:
            yield f"the instrument '{part.instrument}' hands over more than {KEYS_MOST} characters"
    restored = declared.combine(frames[0], keys[1:])
    if restored is None:
        yield "at split 1 the keys of all instruments restore no table"
        return
    original = pd.read_csv(io.BytesIO(case.csv)).drop_duplicates()
    union = pd.read_csv(io.BytesIO(csv_bytes(restored)))
    numbers = [c for c in original.select_dtypes("number") if c in union and pd.api.types.is_numeric_dtype(union[c])]
    if not numbers:
        yield "at split 1 the restored table has no column of numbers of the original"
    for column in numbers:
        if not _alike(union[column], original[column]):
            yield f"at split 1 the restored column '{column}' differs from the original"


def _alike(restored: pd.Series, original: pd.Series) -> bool:
    """Whether two columns have nearly the same values in the middle: repeated rows and slips may differ."""
    low, high = original.quantile([0.1, 0.9])
    middles = [column[column.between(low, high)].mean() for column in (restored, original)]
    return bool(abs(middles[0] - middles[1]) <= NEAR * (high - low))
