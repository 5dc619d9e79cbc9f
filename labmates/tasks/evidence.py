"""Divided evidence: the division of a task's data among instruments.

At ``split`` 0 every part is the whole data set. At ``split`` s one part alone can earn a credit of about 1 − s: a
task's units (sensors, species, markers, map sheets …) are closed in an order drawn from the seed, until the credit
from the open units is nearest to 1 − s. Data on closed units are given under codes and in the units of an instrument,
mixed with records of another campaign; other parts hold the register of codes and the check runs that calibrate the
instruments. `tasks.restoring` restores the data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd

from labmates.errors import UsageError
from labmates.tasks.base import Dataset, Difficulty, Division, Instruments, Task, accuracy, csv_bytes
from labmates.tasks.noise import Floats, random_for
from labmates.util.seeds import LARGEST_SEED, derive

STACKED = "Several tables are stacked in `df`; its column `table` names them, and columns of other tables are empty."
ALL = "all instruments"
HOLDS_ALL = "You hold the records of all instruments: what is said to be held elsewhere is in another of your tables."
PLAIN = "plain"
"""The table common to all instruments."""
EVERYTHING = "The records behind the codes were made as this data dictionary says, as far as it goes:"

CHECK_RUNS = 40
"""Check runs per instrument."""
CHECK_ERROR = 0.002
"""Standard deviation of the error of a check run, as a share of the range of its references."""


@dataclass(frozen=True)
class Part:
    """The evidence of one instrument."""

    instrument: str  # name of the instrument
    frame: pd.DataFrame  # all its data as one table; a column ``table`` names the tables if there are several
    description: str  # data dictionary of the part for the agents

    def csv(self) -> bytes:
        """The part as the bytes of a CSV file."""
        return self._csv

    @cached_property
    def _csv(self) -> bytes:
        return csv_bytes(self.frame)


def divide(task: Task[Any, Any], seed: int, difficulty: Difficulty, split: float) -> tuple[Part, ...]:
    """Divide a task's data set of `seed` among its instruments.

    Raises `UsageError` if the task has no instruments, or `split` is out of range.

    Parameters
    ----------
    split
        Share of the credit that needs two or more instruments, from 0 to 1.
    """
    instruments = instruments_of(task)
    if not 0 <= split <= 1:
        raise UsageError(f"split must be between 0 and 1, not {split:g}")
    data = task.generate(seed, difficulty)
    rng = random_for(task.name, seed, difficulty, "evidence")
    closed = closed_units(task, data, split, rng)
    if not closed:
        return tuple(Part(name, data.frame, data.description) for name in instruments.about)
    bits = 31 if seed <= LARGEST_SEED else 128
    other = task.generate(derive(seed, "tasks", task.name, "another campaign", bits=bits), difficulty)
    return _parts(instruments, data, instruments.divide(data, other, closed, rng), closed)


def _parts(
    instruments: Instruments[Any, Any], data: Dataset[Any], division: Division, closed: Collection[str]
) -> tuple[Part, ...]:
    whole = division.plain is None
    parts = []
    for name, about in instruments.about.items():
        tables = {} if division.plain is None else {PLAIN: division.plain}
        words = data.description if name == instruments.explains else without_lines(data.description, closed)
        lead = EVERYTHING if whole else "The table `plain` holds what is not under codes; all others have it too."
        description = f"{about}\n\n{STACKED}\n\n{lead}\n\n{words}"
        parts.append(Part(name, stacked({**tables, **division.tables.get(name, {})}), description))
    return tuple(parts)


def union(task: Task[Any, Any], parts: Sequence[Part]) -> Part:
    """All parts as one, with the common table once."""
    if all(part.frame is parts[0].frame for part in parts):
        return Part(ALL, parts[0].frame, parts[0].description)
    declared = instruments_of(task)
    explaining = next(part for part in parts if part.instrument == declared.explains)
    rest = explaining.description.removeprefix(declared.about[declared.explains]).strip()
    frames = [parts[0].frame, *(part.frame[part.frame["table"] != PLAIN] for part in parts[1:])]
    description = "\n\n".join([HOLDS_ALL, *declared.about.values(), rest])
    return Part(ALL, pd.concat(frames, ignore_index=True), description)


def instruments_of(task: Task[Any, Any]) -> Instruments[Any, Any]:
    """The instruments of a task. Raises `UsageError` if the task has none."""
    if task.instruments is None:
        raise UsageError(f"the task '{task.name}' declares no instruments, so its evidence can't be split; use shared")
    return task.instruments


def closed_units(task: Task[Any, Any], data: Dataset[Any], split: float, rng: np.random.Generator) -> tuple[str, ...]:
    """The units to close at `split`: the prefix of an order drawn from `rng` that comes nearest to it."""
    units = instruments_of(task).units(data)
    order = [units[place] for place in rng.permutation(len(units))]
    if split == 1:
        return tuple(order)
    closing = closed_shares(task, data.truth, order)
    count = min(range(len(order) + 1), key=lambda n: (abs(closing[n] - split), n))
    return tuple(order[:count])


def closed_shares(task: Task[Any, Any], truth: Any, order: Sequence[str]) -> list[float]:
    """Shares of the credit beyond the reach of one part, with the first 0, 1, 2 … units of `order` closed."""
    known = instruments_of(task).known
    some = [1 - accuracy(task.score(known(truth, order[:n]), truth)) for n in range(1, len(order))]
    return list(accumulate([0.0, *some, 1.0], max))


def stacked(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Several tables as one, with their names in the column ``table``."""
    parts = [table.assign(table=name) for name, table in tables.items() if len(table)]
    frame = pd.concat(parts, ignore_index=True)
    return frame[["table", *frame.columns.drop("table")]]


def coded(names: Sequence[str], letter: str, rng: np.random.Generator) -> dict[str, str]:
    """Codes by name: the letter and a number from 1, in an order drawn from `rng`."""
    places = rng.permutation(len(names))
    return {name: f"{letter}{place + 1:02d}" for name, place in zip(names, places.tolist(), strict=True)}


def check_runs(
    scales: Mapping[tuple[str, str], tuple[float, float]],
    spans: Mapping[str, tuple[float, float]],
    rng: np.random.Generator,
    law: str = "linear",
) -> pd.DataFrame:
    """Readings of known references by each instrument.

    Parameters
    ----------
    scales
        Offset and gain by code and recorder.
    spans
        Range of the references by code.
    law
        ``linear``: reading = offset + gain · reference; ``power``: the same of their natural logarithms.
    """
    runs = []
    for (code, recorder), (offset, gain) in scales.items():
        low, high = np.log(spans[code]) if law == "power" else spans[code]
        reference = rng.uniform(low, high, CHECK_RUNS)
        reading = offset + gain * (reference + CHECK_ERROR * (high - low) * rng.standard_normal(CHECK_RUNS))
        if law == "power":
            reference, reading = np.exp(reference), np.exp(reading)
        written = {"reference": _written(reference), "reading": _written(reading)}
        runs.append(pd.DataFrame({"code": code, "recorder": recorder, "law": law, **written}))
    return pd.concat(runs, ignore_index=True)


def _written(values: Floats) -> list[float]:
    return [float(f"{value:.7g}") for value in values]


def canonical(names: pd.Series, known: Sequence[str] | None = None) -> pd.Series:
    """Names in their canonical spelling: the nearest of the `known` names, or of the frequent ones."""
    tidy = names.astype(str).str.replace("_", " ").str.split().str.join(" ").str.lower()
    times = tidy.value_counts()
    right = {name.lower(): name for name in known or times.index[times > 0.2 * times.iloc[0]]}
    short = {f"{name[0]}. {name.split()[-1]}": name for name in right}
    near = {
        name: right[name if name in right else short.get(name) or get_close_matches(name, list(right), 1, 0)[0]]
        for name in times.index
    }
    return tidy.map(near)


def without_lines(description: str, names: Collection[str]) -> str:
    """A data dictionary without the lines of these columns."""
    return "\n".join(line for line in description.split("\n") if line[2:].partition(":")[0] not in names)


def code_names(codes: Mapping[str, str], names: Collection[str]) -> pd.DataFrame:
    """A register of the codes of these names."""
    return pd.DataFrame([{"code": code, "name": name} for name, code in codes.items() if name in names]).sort_values(
        "code"
    )


def code_blocks(blocks: Mapping[str, Mapping[str, object]]) -> pd.DataFrame:
    """A register of blocks: a row per code, with its content in columns."""
    return pd.DataFrame([{"code": code, **about} for code, about in sorted(blocks.items())])
