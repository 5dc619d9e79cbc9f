"""The rules on a task's attributes, its generator, its data and the instruments that divide its evidence."""

from __future__ import annotations

import io
import json
import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pandas as pd
from pydantic import BaseModel

from labmates.tasks.base import Dataset, Difficulty, Instruments, Task, csv_bytes
from labmates.tasks.evidence import Part, closed_shares, divide
from labmates.tasks.findings import read_findings
from labmates.tasks.restoring import Keys
from labmates.tasks.schema import findings_parameters
from labmates_author.tasks.cases import Case, differing, fingerprint
from labmates_author.trial import Mild

LEAST_INSTRUMENTS = 3
KEYS_MOST = 5_000
"""Most characters of one holder's keys."""
STEP_MOST = 0.45
"""Largest gap between the possible splits of a data set."""
NEAR = 0.05
"""Tolerance for the mean of a restored column's middle values, as a share of the original's range."""
SECONDS_MOST = 2.0
ROWS = (1_000, 100_000)
PRIVATE_SEED = 2**127 + 1
"""As wide as a seed of `labmates.tasks.salt`."""
SPOILERS = frozenset(
    {"truth", "true", "label", "oracle", "answer", "anomaly", "anomalous", "outlier", "regime", "latent", "hidden"}
)
"""Words forbidden in column names, since they reveal the questions' answers."""


def instruments(case: Case) -> Iterator[str | Mild]:
    """Check the division of one data set; tasks without instruments pass."""
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
        yield Mild(f"closing one unit closes {max(steps):.2f} of the credit, so no split in between is possible")
    split, again = (divide(case.task, case.seed, case.difficulty, 1.0) for _ in range(2))
    if any(not first.frame.equals(second.frame) for first, second in zip(split, again, strict=True)):
        yield "the same seed gave different parts"
    yield from _spoilers(case, split[0])
    yield from _union(case, declared, split)


def _spoilers(case: Case, readings: Part) -> Iterator[str]:
    """Look for names from the truth in the part with the readings at split 1."""
    text = f"{readings.frame.to_csv(index=False)}\n{readings.description}".lower()
    names = {name for name in text_values(case.data.truth.model_dump(mode="json")) if len(name) > 3}
    for name in sorted(names):
        if name.lower() in text and name not in case.task.brief:
            yield f"at split 1 the instrument '{readings.instrument}' reveals '{name}' of the truth"


def _union(case: Case, declared: Instruments[Any, Any], split: Sequence[Part]) -> Iterator[str]:
    """Check that the keys of all others restore the table of the first instrument."""
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


def attributes(task: Task[Any, Any]) -> Iterator[str]:
    """Check a task's class attributes."""
    for attribute in ("name", "title", "brief", "version"):
        value = getattr(task, attribute, None)
        if not isinstance(value, str) or not value.strip():
            yield f"the class attribute '{attribute}' must be a text"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", str(getattr(task, "name", ""))):
        yield "the name must be lower-case letters, digits and underscores, and begin with a letter"
    model = getattr(task, "findings", None)
    if not (isinstance(model, type) and issubclass(model, BaseModel) and model.model_fields):
        yield "the class attribute 'findings' must be a pydantic model with fields"
        return
    for name, field in model.model_fields.items():
        if field.is_required() or field.get_default(call_default_factory=False) is not None:
            yield f"the findings field '{name}' must be optional with the default None"
        if not field.description:
            yield f"the findings field '{name}' must have a description with its unit"
    try:
        findings_parameters(model)
    except Exception as error:
        yield f"the findings have no JSON schema, which agents need to state them: {error}"
    examples = {name: field.examples[0] for name, field in model.model_fields.items() if field.examples}
    shown = read_findings(f"```findings\n{json.dumps(examples)}\n```", model)
    yield from (f"the example in the findings schema is wrong: {problem}" for problem in shown.problems)


def generate(task: Task[Any, Any], seed: int, difficulty: Difficulty, cases: list[Case]) -> Iterator[str]:
    """Add the data set of a seed to `cases`; yield problems of its types and its time."""
    begin = time.process_time()
    data = task.generate(seed, difficulty)
    busy = time.process_time() - begin
    if not isinstance(data, Dataset):
        yield f"generate must return a Dataset, not {type(data).__name__}"
        return
    kinds = {"frame": pd.DataFrame, "truth": BaseModel, "description": str}
    wrong = [
        f"the data set's {name} must be a {kind.__name__}, not {type(getattr(data, name)).__name__}"
        for name, kind in kinds.items()
        if not isinstance(getattr(data, name), kind)
    ]
    if wrong:
        yield from wrong
        return
    cases.append(Case(task, seed, difficulty, data, data.csv()))
    if busy > SECONDS_MOST:
        yield f"generating took {busy:.1f} s of the processor, more than {SECONDS_MOST:g} s"


def private_seed(task: Task[Any, Any]) -> Iterator[str]:
    """Check the data set of a seed of 128 bits."""
    data = task.generate(PRIVATE_SEED, "medium")
    if not isinstance(data, Dataset):
        yield f"generate must return a Dataset, not {type(data).__name__}"


def same_seed(case: Case, first: dict[str, str]) -> Iterator[str]:
    """Generate the data set again with another global random state; yield differences from the `first` one."""
    with global_random(1):
        again = fingerprint(case.task.generate(case.seed, case.difficulty))
    if again != first:
        parts = differing(first, again)
        yield f"the same seed gave different {parts}; draw from a generator of the seed, not from global random numbers"


@contextmanager
def global_random(seed: int) -> Iterator[None]:
    """Seed the global random numbers for a while."""
    import numpy as np

    before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


def frame(case: Case) -> Iterator[str | Mild]:
    """Check that the data are a plain table, with the errors of real records."""
    table = case.data.frame
    if not isinstance(table.index, pd.RangeIndex) or table.index.name or table.attrs:
        yield "the frame must have a plain index without name, and no attrs"
    back = pd.read_csv(io.BytesIO(case.csv))
    if list(back.columns) != list(table.columns) or len(back) != len(table):
        yield "the frame does not survive a CSV file: columns or rows differ"
    if case.task.is_fixed:  # real data, which are as they are
        return
    if not ROWS[0] <= len(table) <= ROWS[1]:
        yield Mild(f"{len(table)} rows; {ROWS[0]} to {ROWS[1]} are usual")
    if not table.isna().to_numpy().any() and not table.duplicated().any():
        yield Mild("no value is missing and no row repeated, unlike in real data")


def spoilers(case: Case) -> Iterator[str]:
    """Look for the truth in column names and description.

    A column may have a name from the truth (a sensor), but not as a part of its name.
    """
    columns = [str(column) for column in case.data.frame.columns]
    texts, numbers = _values(
        [case.data.truth.model_dump(mode="json"), case.task.oracle(case.data.truth).model_dump(mode="json")]
    )
    for column in columns:
        parts = re.findall(r"[a-z]+|\d+", column.lower())
        if SPOILERS.intersection(parts):
            yield f"the column '{column}' announces the truth"
        if column not in texts and any(text.lower() in column.lower() for text in texts if len(text) > 3):
            yield f"the column '{column}' contains a name from the truth"
        if column not in texts and any(part in numbers for part in parts if len(part) > 1):
            yield f"the column '{column}' contains a number from the truth"
    for text in sorted(texts - set(columns)):
        if len(text) > 3 and text in case.data.description and text not in case.task.brief:
            yield f"the description contains '{text}' from the truth"


def text_values(value: Any) -> set[str]:
    """The texts anywhere in a JSON value."""
    return _values([value])[0]


def _values(value: Any) -> tuple[set[str], set[str]]:
    """The texts and the numbers (as text) anywhere in a JSON value."""
    texts: set[str] = set()
    numbers: set[str] = set()
    todo = [value]
    while todo:
        inner = todo.pop()
        if isinstance(inner, dict):
            todo += inner.values()
        elif isinstance(inner, list):
            todo += inner
        elif isinstance(inner, str):
            texts.add(inner)
        elif isinstance(inner, (int, float)) and not isinstance(inner, bool):
            numbers.add(f"{inner:g}")
    return texts, numbers
