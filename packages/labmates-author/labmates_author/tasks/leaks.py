"""Leaks of the truth into the data: columns whose values reveal the answers.

Hidden facts are taken from the truth as JSON: labels of rows, labels by the values of a column, lists of column values,
and single numbers and texts. A column leaks if its values reveal one of these without any analysis.
One data set may seem to leak by chance, so a leak counts only if every seed has it, with different content.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

SURE = 0.98
"""A column reveals a label if it removes this share of the errors of a constant guess."""
SAME = 0.9
"""Required share of a column's values that equal hidden ones; the rest may be errors."""
FEWEST_ROWS = 20
MOST_VALUES = 100
DIGITS = 3
"""A number with fewer digits may occur anywhere by chance."""

Codes = npt.NDArray[np.int64]
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Leak:
    """A place in a data set that reveals a part of its truth.

    Attributes
    ----------
    place
        The column or text, for instance ``"the column 'arm'"``.
    part
        The revealed part of the truth, for instance ``"patients[].subtype"``.
    content
        The revealed content; it differs between seeds if it is hidden at all.
    """

    place: str
    part: str
    content: str


@dataclass(frozen=True)
class _Column:
    """A column: the code of each row's value (-1 for none), codes by the values' texts, and numbers.

    Measurements have no texts, since they are not names.
    """

    codes: Codes
    values: int
    names: Mapping[str, int]
    numbers: npt.NDArray[np.float64] | None


@dataclass(frozen=True)
class _Labels:
    """Hidden labels of rows; `by` is the column that they follow from, if any."""

    part: str
    rows: Sequence[Any]
    by: str | None = None


def find_leaks(frame: pd.DataFrame, description: str, truth: Mapping[str, Any]) -> set[Leak]:
    """Leaks of a truth, given as JSON values, into columns and description."""
    kept = ~frame.duplicated().to_numpy()
    rows = frame.loc[kept, ~frame.columns.duplicated()].set_axis(range(kept.sum()))
    columns = {str(name): _read(rows[name]) for name in rows}
    hidden = list(_walk(truth))
    floats = {value for _, value in hidden if isinstance(value, float) and not value.is_integer()}
    numbers = (text for text in _NUMBER.findall(description) if float(text) in floats and _is_telling(float(text)))
    leaks = {Leak("the description", "a number", text) for text in numbers}
    keep = kept.tolist()
    for part, value in hidden:
        for labels in _labels(part, value, columns, keep):
            leaks.update(_told_by_columns(columns, labels))
    for name in rows:
        leaks.update(_repeated(rows[name], hidden, floats))
    return leaks


def held_answers(frame: pd.DataFrame, truth: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Columns of a table that hold nothing but answers or mark the rows of an answer's list, each with the answer.

    For tasks with a single data set. A column with several of the texts of an answer's list is no leak, since counting
    them may be the question; nor is one that marks some of only a few groups, which it may do by chance.
    """
    answers = {_key(value): part for part, value in _walk(truth) if _is_scalar(value) and not isinstance(value, bool)}
    for name in frame.columns[~frame.columns.duplicated()]:
        values = frame[name].dropna().unique()[: MOST_VALUES + 1].tolist()
        parts = [answers.get(_key(value), "") for value in values]
        if all(parts) and (len(values) == 1 or not any(isinstance(value, str) for value in values)):
            yield from ((f"the column '{name}'", part) for part in parts[:1])
    columns = {str(name): _read(frame[name]) for name in frame}
    for part, value in _walk(truth):
        for labels in _labels(part, value, columns, [True] * len(frame)):
            if labels.by and columns[labels.by].values >= FEWEST_ROWS:
                yield from ((leak.place, part) for leak in _told_by_columns(columns, labels))


def lasting_leaks(seen: Sequence[set[Leak]]) -> list[Leak]:
    """The leaks common to all data sets of a difficulty, with different content."""
    contents: dict[tuple[str, str], dict[int, set[str]]] = {}
    for number, leak in ((number, leak) for number, leaks in enumerate(seen) for leak in leaks):
        contents.setdefault((leak.place, leak.part), {}).setdefault(number, set()).add(leak.content)
    return [
        Leak(place, part, min(by_seed[0]))
        for (place, part), by_seed in sorted(contents.items())
        if len(by_seed) == len(seen) and any(content != by_seed[0] for content in by_seed.values())
    ]


def _walk(value: Any, part: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a JSON value with its place; ``events[].start`` is the start of any event."""
    yield part, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, f"{part}.{key}" if part else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, f"{part}[]")


def _is_telling(value: float) -> bool:
    return len(re.sub(r"e.*|\D", "", f"{value:g}").strip("0")) >= DIGITS


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _key(value: Any) -> str:
    """A canonical form for comparisons: 3, 3.0 and "3" are the same."""
    return f"{value:.12g}" if isinstance(value, (int, float)) else str(value)


def _read(values: pd.Series[Any]) -> _Column:
    codes, different = pd.factorize(values)
    is_measured = pd.api.types.is_float_dtype(values) and bool((values.dropna() % 1).any())
    names = {} if is_measured else {_key(value): code for code, value in enumerate(different.tolist())}
    numbers = pd.to_numeric(values, errors="coerce")
    is_number = numbers.notna().sum() >= SAME * values.notna().sum()
    return _Column(codes, len(different), names, numbers.to_numpy(float) if is_number else None)


def _labels(part: str, value: Any, columns: Mapping[str, _Column], kept: Sequence[bool]) -> Iterator[_Labels]:
    """Every labelling of the rows by one part of the truth."""
    if isinstance(value, list) and value and all(map(_is_scalar, value)):
        if FEWEST_ROWS <= len(value) in (len(kept), sum(kept)):
            yield _Labels(part, [*itertools.compress(value, kept)] if len(value) == len(kept) else value)
        members = frozenset(map(_key, value))
        for name, column in columns.items():
            if len(members) == len(value) and members < column.names.keys():
                yield _Labels(part, np.isin(column.codes, [column.names[key] for key in members]).tolist(), by=name)
    elif isinstance(value, list) and value and all(isinstance(record, dict) for record in value):
        for key, other in itertools.permutations(value[0], 2):
            pairs = {_key(record.get(key)): record.get(other) for record in value}
            if len(pairs) == len(value):
                yield from _mapped(f"{part}[].{other}", pairs, columns)
    elif isinstance(value, dict):
        yield from _mapped(part, {_key(key): label for key, label in value.items()}, columns)


def _mapped(part: str, labels: Mapping[str, Any], columns: Mapping[str, _Column]) -> Iterator[_Labels]:
    """The labels of rows, for each column with labels for nearly all its values."""
    if len(labels) > 1 and all(map(_is_scalar, labels.values())):
        for name, column in columns.items():
            if len(column.names.keys() & labels.keys()) >= SAME * max(len(labels), column.values):
                by_code = [*(labels.get(key) for key in column.names), None]
                yield _Labels(part, [by_code[code] for code in column.codes], by=name)


def _told_by_columns(columns: Mapping[str, _Column], labels: _Labels) -> Iterator[Leak]:
    rows = pd.Series(labels.rows)
    codes, different = pd.factorize(rows)
    units = columns[labels.by].values if labels.by else len(codes)
    numbers = rows.to_numpy(float) if all(isinstance(value, (int, float)) for value in different.tolist()) else None
    content = str(hash(tuple(map(_key, labels.rows))))
    for name, column in columns.items():
        both = (codes >= 0) & (column.codes >= 0)
        if name == labels.by or both.sum() < FEWEST_ROWS or len(np.unique(codes[both])) < 2:
            continue
        if _tells(column.codes[both], codes[both], units) or (
            numbers is not None and column.numbers is not None and _equals(column.numbers[both], numbers[both])
        ):
            yield Leak(f"the column '{name}'", labels.part, content)


def _tells(values: Codes, labels: Codes, units: int) -> bool:
    """Whether nearly every value of a column determines a label (Goodman and Kruskal's lambda)."""
    n_values, n_labels = len(np.unique(values)), len(np.unique(labels))
    if n_values > 2 * n_labels or 2 * n_labels > units:
        return False  # a patient's name identifies all facts about the patient, but reveals none
    counts = pd.DataFrame({"value": values, "label": labels}).value_counts()
    wrong = len(labels) - counts.groupby(level="value").max().sum()
    return bool(wrong <= (1 - SURE) * (len(labels) - np.bincount(labels).max()))


def _equals(values: npt.NDArray[np.float64], hidden: npt.NDArray[np.float64]) -> bool:
    """Whether a column has the hidden numbers."""
    return bool(np.isclose(values, hidden, rtol=1e-9, atol=0).mean() >= SAME)


def _repeated(rows: pd.Series[Any], hidden: Sequence[tuple[str, Any]], floats: set[float]) -> Iterator[Leak]:
    """Leaks of a column that only repeats texts or numbers of the truth."""
    values = rows.dropna().unique()[: MOST_VALUES + 1].tolist()
    if len(values) == 1:
        for part, value in hidden:
            if _is_scalar(value) and _key(value) == _key(values[0]):
                yield Leak(f"the column '{rows.name}'", part, _key(value))
    elif (
        1 < len(values) <= MOST_VALUES and floats.issuperset(values) and 2 * sum(map(_is_telling, values)) > len(values)
    ):
        yield Leak(f"the column '{rows.name}'", "its numbers", str(sorted(values)))
