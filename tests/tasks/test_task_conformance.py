"""The conformance test passes our tasks and a small third-party one, and catches each way of being wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, Field

from labmates.errors import UsageError
from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task
from labmates.tasks.conformance import Problem, check_task
from labmates.tasks.registry import TASKS, get_task
from labmates.tasks.words import says_all


class LineFindings(BaseModel):
    slope: float | None = Field(None, description="slope of y over x")


class LineTruth(BaseModel):
    slope: float


class LineTask(Task[LineTruth, LineFindings]):
    """What a third party writes: one small class."""

    name = "line"
    title = "A line"
    brief = "Find the slope of y over x."
    version = "1"
    findings = LineFindings

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[LineTruth]:
        rng = np.random.default_rng([seed, len(difficulty)])
        slope = round(float(rng.uniform(100, 999)) + seed * 1000, 2)
        x = np.round(rng.uniform(0, 1, size=1500), 3)
        frame = pd.DataFrame({"x": x, "y": np.round(slope * x, 1)})
        frame.loc[::50, "y"] = np.nan
        return Dataset(frame, LineTruth(slope=slope), "x and y, without unit")

    def oracle(self, truth: LineTruth) -> LineFindings:
        return LineFindings(slope=truth.slope)

    def score(self, findings: LineFindings, truth: LineTruth) -> tuple[Credit, ...]:
        return (Credit("slope", float(findings.slope == truth.slope), 1.0, "slope"),)

    def checks(self, truth: LineTruth) -> tuple[Check, ...]:
        return (Check("slope told", says_all(r"slope")),)


@pytest.mark.parametrize("name", ["ecology", "anomaly"])
def test_our_tasks_conform(name: str) -> None:
    errors = [problem for problem in check_task(get_task(name), seeds=(0, 11)) if problem.severity == "error"]
    assert errors == []


def test_a_small_third_party_task_conforms() -> None:
    assert check_task(LineTask()) == []


def broken(**members: Any) -> Task[Any, Any]:
    task: Task[Any, Any] = type("BrokenTask", (LineTask,), members)()
    return task


def data(change: Callable[[Dataset[LineTruth]], Dataset[LineTruth]]) -> Callable[..., Dataset[LineTruth]]:
    def generate(self: LineTask, seed: int, difficulty: Difficulty = "medium") -> Dataset[LineTruth]:
        return change(LineTask.generate(self, seed, difficulty))

    return generate


def frame(change: Callable[[pd.DataFrame, LineTruth], pd.DataFrame]) -> Callable[..., Dataset[LineTruth]]:
    return data(lambda one: Dataset(change(one.frame, one.truth), one.truth, one.description))


class Required(BaseModel):
    slope: float = Field(description="slope")


class Undescribed(BaseModel):
    slope: float | None = None


class Wider(LineFindings):
    colour: str = "red"


def _with_attrs(table: pd.DataFrame, truth: LineTruth) -> pd.DataFrame:
    table.attrs["slope"] = truth.slope
    return table


_CALLS = iter(range(10**6))


@pytest.mark.parametrize(
    ("rule", "says", "members"),
    [
        ("attributes", "'title' must be a text", {"title": " "}),
        ("attributes", "lower-case letters", {"name": "Line task"}),
        ("attributes", "must be a pydantic model", {"findings": dict}),
        ("attributes", "must be optional", {"findings": Required}),
        ("attributes", "must have a description", {"findings": Undescribed}),
        ("generate", "raised ZeroDivisionError", {"generate": lambda self, seed, difficulty: 1 / 0}),
        ("generate", "must return a Dataset", {"generate": lambda self, seed, difficulty: None}),
        (
            "generate",
            "the same seed gave other",
            {"generate": frame(lambda table, truth: table.assign(x=next(_CALLS)))},
        ),
        ("other seed", "same data", {"generate": lambda self, seed, difficulty: LineTask().generate(0)}),
        ("other seed", "other seed's oracle scores 1.000", {"score": lambda *_: (Credit("slope", 1.0, 1, ""),)}),
        ("frame", "plain index", {"generate": frame(lambda table, truth: table.set_index("x"))}),
        ("frame", "no attrs", {"generate": frame(_with_attrs)}),
        ("frame", "survive a CSV", {"generate": frame(lambda table, truth: table.set_axis(["y", "y"], axis=1))}),
        ("frame", "rows; 1000 to", {"generate": frame(lambda table, truth: table.head(60))}),
        ("frame", "no value is missing", {"generate": frame(lambda table, truth: table.drop_duplicates("x").dropna())}),
        (
            "spoilers",
            "announces the truth",
            {"generate": frame(lambda table, truth: table.assign(true_slope=1))},
        ),
        (
            "spoilers",
            "a number from the truth",
            {
                "generate": lambda self, seed, difficulty: Dataset(
                    LineTask().generate(seed).frame.assign(**{f"x{seed + 77}": 1}), LineTruth(slope=seed + 77), ""
                )
            },
        ),
        ("score", "the oracle's report scores 0.000", {"oracle": lambda self, truth: LineFindings(slope=1)}),
        ("score", "can't be read back", {"oracle": lambda self, truth: Wider(slope=truth.slope)}),
        ("score", "empty findings score", {"score": lambda *_: (Credit("slope", 1.0, 1, ""),)}),
        ("score", "credit in [0, 1]", {"score": lambda *_: (Credit("slope", 1.5, 1, ""),)}),
        ("score", "positive weight", {"score": lambda *_: (Credit("slope", 1.0, 0, ""),)}),
        ("score", "each finding once", {"score": lambda *_: ()}),
        ("score", "raised RuntimeError", {"score": lambda *_: (_ for _ in ()).throw(RuntimeError("no"))}),
        ("checks", "at least one check", {"checks": lambda self, truth: ()}),
        ("checks", "does not hold for the template", {"checks": lambda self, truth: (Check("a", says_all("zebra")),)}),
        ("checks", "holds for an empty text", {"checks": lambda self, truth: (Check("a", lambda text: True),)}),
        ("checks", "raised", {"checks": lambda self, truth: (Check("a", lambda text: bool(text.encode())),)}),
    ],
)
def test_each_way_of_being_wrong_is_caught(rule: str, says: str, members: dict[str, Any]) -> None:
    problems = check_task(broken(**members), seeds=(0, 1))
    assert any(one.rule == rule and says in one.text for one in problems), problems


def test_a_truth_that_json_can_not_hold_is_caught() -> None:
    class Odd(LineTruth):
        secret: Any = object()

    problems = check_task(
        broken(generate=data(lambda one: Dataset(one.frame, Odd(slope=one.truth.slope), one.description)))
    )
    assert any(one.rule == "truth" for one in problems)


def test_a_description_that_tells_the_truth_is_caught() -> None:
    class Named(LineTruth):
        culprit: str = "Gelasta rugosa"

    problems = check_task(
        broken(generate=data(lambda one: Dataset(one.frame, Named(slope=one.truth.slope), "Look at Gelasta rugosa.")))
    )
    assert any("the description contains 'Gelasta rugosa'" in one.text for one in problems)


def test_one_seed_is_not_enough_to_compare() -> None:
    with pytest.raises(UsageError, match="two different seeds"):
        check_task(LineTask(), seeds=(4, 4))


def test_odd_sizes_are_warnings_not_errors() -> None:
    problems = check_task(broken(generate=frame(lambda table, truth: table.head(60))))
    assert {one.severity for one in problems if "rows" in one.text} == {"warning"}
    assert Problem("a", "b").severity == "error"


def test_a_task_is_found_by_name_and_an_unknown_one_named() -> None:
    assert get_task("ecology").name == "ecology"
    assert {"ecology", "anomaly"} <= set(TASKS)
    with pytest.raises(UsageError, match=r"unknown task 'ecolgy'.*Did you mean 'ecology'"):
        get_task("ecolgy")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (f"{__name__}:LineTruth", "must be a subclass"),
        (f"{__name__}:Incomplete", "can't be made"),
        ("no_such_module:Task", "can't be imported"),
    ],
)
def test_a_plug_in_that_is_no_task_is_a_usage_error(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setitem(sys.modules, __name__, request.module)
    monkeypatch.setattr(TASKS, "_plugins", {value: EntryPoint("odd", value, "labmates.tasks")})
    with pytest.raises(UsageError, match=message):
        get_task(value)


class Incomplete(Task[LineTruth, LineFindings]):
    name = "incomplete"


def test_the_default_summary_tells_the_oracle() -> None:
    assert LineTask().summary(LineTruth(slope=2.5)) == "The finding slope is 2.5."
