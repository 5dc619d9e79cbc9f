"""The conformance test that every task must pass, ours and those of other packages."""

from __future__ import annotations

import io
import itertools
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec

from pydantic import BaseModel

from labmates.errors import UsageError
from labmates.tasks.base import DIFFICULTIES, Credit, Dataset, Difficulty, Task, accuracy
from labmates.tasks.fences import split_blocks
from labmates.tasks.findings import read_findings
from labmates.tasks.report import oracle_report
from labmates.tasks.schema import findings_schema_text

P = ParamSpec("P")

ORACLE_LEAST = 0.95
OTHER_MOST = 0.5
SECONDS_MOST = 2.0
ROWS = (1_000, 100_000)
SPOILERS = frozenset(
    {"truth", "true", "label", "oracle", "answer", "anomaly", "anomalous", "outlier", "regime", "latent", "hidden"}
)
"""Words that no column name may contain: they announce what the agents are to find out."""
HOSTILE = ("", "\x00", "9" * 5000, "((((" * 500, "species " * 2000, "\ud800 sensor 1e400")
"""Texts with which the checks of a task must cope."""


@dataclass(frozen=True)
class Problem:
    """Something about a task that does not hold.

    Attributes
    ----------
    rule
        Which rule, for instance ``"oracle"``.
    text
        What is wrong, and for which data set.
    severity
        An ``"error"`` must be repaired; a ``"warning"`` should be looked at.
    """

    rule: str
    text: str
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True)
class _Case:
    task: Task[Any, Any]
    seed: int
    difficulty: Difficulty
    data: Dataset[Any]
    csv: bytes

    @property
    def where(self) -> str:
        return f"seed {self.seed}, {self.difficulty}"


def check_task(task: Task[Any, Any], seeds: Sequence[int] = (0, 1, 2)) -> list[Problem]:
    """Try a task on every difficulty with some seeds and return what does not hold; an empty list is a pass.

    The rules: attributes and findings schema are complete; the same seed gives the same bytes and another seed other
    data; the data are a plain table that survives a CSV file; column names and description tell nothing of the truth;
    the template report written from the truth is read without problems and scores at least 0.95, an empty report 0,
    the report of another seed below 0.5; the checks hold for the template report and for no empty one, and cope with
    any text. Slow generators, odd sizes and clean data are warnings. Exceptions of the task are problems too, never
    raised.

    Raises
    ------
    UsageError
        If there are fewer than two different seeds to compare.
    """
    if len(set(seeds)) < 2:
        raise UsageError("checking a task needs at least two different seeds")
    problems = list(_guarded("attributes", "", _attributes, task))
    cases: list[_Case] = []
    for difficulty, seed in itertools.product(DIFFICULTIES, dict.fromkeys(seeds)):
        problems += _guarded("generate", f"seed {seed}, {difficulty}", _generate, task, seed, difficulty, cases)
    for case, (name, rule) in itertools.product(cases, _CASE_RULES.items()):
        problems += _guarded(name, case.where, rule, case)
    for a, b in itertools.permutations(cases, 2):
        if a.difficulty == b.difficulty:
            problems += _guarded("other seed", f"{a.where} against {b.where}", _other, a, b)
    return problems


def _guarded(
    rule: str, where: str, look: Callable[P, Iterable[str | Problem]], *args: P.args, **kwargs: P.kwargs
) -> Iterator[Problem]:
    """Run one rule; what it yields, and what it raises, become problems."""
    prefix = f"{where}: " if where else ""
    try:
        for one in look(*args, **kwargs):
            yield one if isinstance(one, Problem) else Problem(rule, prefix + one)
    except Exception as error:  # a plug-in may raise anything
        yield Problem(rule, f"{prefix}raised {type(error).__name__}: {error}")


def _attributes(task: Task[Any, Any]) -> Iterator[str]:
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
    if not findings_schema_text(task).strip():
        yield "the findings schema has no text"


def _generate(task: Task[Any, Any], seed: int, difficulty: Difficulty, cases: list[_Case]) -> Iterator[str | Problem]:
    start = time.perf_counter()
    data = task.generate(seed, difficulty)
    seconds = time.perf_counter() - start
    if not isinstance(data, Dataset):
        yield f"generate must return a Dataset, not {type(data).__name__}"
        return
    again, csv = task.generate(seed, difficulty), data.csv()
    if (csv, data.description, data.truth) != (again.csv(), again.description, again.truth):
        yield "the same seed gave other data, description or truth"
    if seconds > SECONDS_MOST:
        text = f"seed {seed}, {difficulty}: generating took {seconds:.1f} s, more than {SECONDS_MOST:g} s"
        yield Problem("generate", text, "warning")
    cases.append(_Case(task, seed, difficulty, data, csv))


def _frame(case: _Case) -> Iterator[str | Problem]:
    import pandas as pd

    frame = case.data.frame
    if not isinstance(frame.index, pd.RangeIndex) or frame.index.name or frame.attrs:
        yield "the frame must have a plain index without name, and no attrs"
    back = pd.read_csv(io.BytesIO(case.csv))
    if list(back.columns) != list(frame.columns) or len(back) != len(frame):
        yield "the frame does not survive a CSV file: columns or rows differ"
    if not ROWS[0] <= len(frame) <= ROWS[1]:
        text = f"{case.where}: {len(frame)} rows; {ROWS[0]} to {ROWS[1]} are usual"
        yield Problem("frame", text, "warning")
    if not frame.isna().to_numpy().any() and not frame.duplicated().any():
        yield Problem("frame", f"{case.where}: no value is missing and no row repeated, unlike in real data", "warning")


def _spoilers(case: _Case) -> Iterator[str]:
    """Look for the truth in column names and description.

    A column may be named as something in the truth (a sensor), but must not carry it in a part of its name.
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


def _values(value: Any) -> tuple[set[str], set[str]]:
    """Return the texts and the numbers (as text) anywhere in a JSON value."""
    texts: set[str] = set()
    numbers: set[str] = set()
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str):
            texts.add(one)
        elif isinstance(one, (int, float)) and not isinstance(one, bool):
            numbers.add(f"{one:g}")
    return texts, numbers


def _truth(case: _Case) -> Iterator[str]:
    truth = case.data.truth
    if type(truth).model_validate_json(truth.model_dump_json()) != truth:
        yield "the truth does not survive being written as JSON and read again"


def _score(case: _Case) -> Iterator[str]:
    task, truth = case.task, case.data.truth
    read = read_findings(oracle_report(task, truth), task.findings)
    yield from (f"the oracle's findings can't be read back: {problem}" for problem in read.problems)
    if read.findings is not None:
        credits = task.score(read.findings, truth)
        yield from _credits(credits)
        if not accuracy(credits) >= ORACLE_LEAST:
            weak = ", ".join(one.finding for one in credits if one.credit < 1)
            yield f"the oracle's report scores {accuracy(credits):.3f}, less than {ORACLE_LEAST} ({weak})"
    empty = task.score(task.findings(), truth)
    yield from _credits(empty)
    if accuracy(empty) != 0:
        yield f"empty findings score {accuracy(empty):.3f}, not 0"


def _credits(credits: Sequence[Credit]) -> Iterator[str]:
    names = [one.finding for one in credits]
    if not names or len(set(names)) < len(names):
        yield "a score needs at least one credit, and each finding once"
    for one in credits:
        if not 0 <= one.credit <= 1 or not 0 < one.weight < math.inf:
            yield f"'{one.finding}' needs a credit in [0, 1] and a positive weight, not {one.credit} and {one.weight}"


def _checks(case: _Case) -> Iterator[str]:
    prose = split_blocks(oracle_report(case.task, case.data.truth)).prose
    checks = case.task.checks(case.data.truth)
    if not checks or len({check.name for check in checks}) < len(checks):
        yield "a task needs at least one check, each with its own name"
    for check in checks:
        if not check.holds(prose):
            yield f"the check '{check.name}' does not hold for the template report; let `summary` say what it looks for"
        if check.holds(""):
            yield f"the check '{check.name}' holds for an empty text"
        for text in HOSTILE:
            check.holds(text)


def _other(a: _Case, b: _Case) -> Iterator[str]:
    if a.csv == b.csv:
        yield "both seeds give the same data"
    credits = a.task.score(a.task.oracle(b.data.truth), a.data.truth)
    if not accuracy(credits) < OTHER_MOST:
        yield f"the other seed's oracle scores {accuracy(credits):.3f}, not less than {OTHER_MOST}"


_CASE_RULES: dict[str, Callable[[_Case], Iterable[str | Problem]]] = {
    "frame": _frame,
    "spoilers": _spoilers,
    "truth": _truth,
    "score": _score,
    "checks": _checks,
}
