"""The conformance test passes our tasks and a small third-party one, and catches each way of being wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel, Field

from labmates.errors import UsageError
from labmates.tasks.analysis import Analysis
from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task
from labmates.tasks.registry import TASKS, get_task, make_task
from labmates.tasks.words import says_all
from labmates_author.tasks import RULES, Problem, check_task
from labmates_author.tasks.report_rules import faults
from tests.support.line_task import LineFindings, LineTask, LineTruth
from tests.support.odd_findings import odd_findings


@pytest.mark.slow("tests/tasks")
@pytest.mark.parametrize("name", ["anomaly", "ecology", "biomarker", "geospatial"])
def test_our_tasks_conform(name: str) -> None:
    errors = [problem for problem in check_task(get_task(name), seeds=(0, 11)) if problem.severity == "error"]
    assert errors == []


def test_a_small_third_party_task_conforms() -> None:
    assert check_task(LineTask()) == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('RESULT {\"slope\": 1.5}')", ""),
        ('print(\'RESULT {"slope": "steep"}\')', "a line RESULT: "),
        ("print(len(df))", "print no findings"),
        ("1 / 0", "raised ZeroDivisionError"),
        ("print('RESULT {\"slope\": 1.5}' + '\\nx' * 9000)", "characters; at most"),
    ],
)
def test_the_cells_of_a_task_run_and_print_valid_findings_in_few_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, problem: str
) -> None:
    folder = tmp_path / f"cells_{abs(hash(code))}"
    folder.mkdir()
    (folder / "prepare.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    task = broken(analysis=Analysis(folder.name, {"prepare": "look at the line"}, ("A line was fitted.",), "much"))
    found = [each for each in check_task(task, seeds=(0, 1)) if each.rule == "analysis"]
    assert (not found) if not problem else all(problem in each.text for each in found) and len(found) == 3


def broken(**members: Any) -> Task[Any, Any]:
    task: Task[Any, Any] = type("BrokenTask", (LineTask,), members)()
    return task


def data(change: Callable[[Dataset[LineTruth]], Dataset[Any]]) -> Callable[..., Dataset[Any]]:
    def generate(self: LineTask, seed: int, difficulty: Difficulty = "medium") -> Dataset[Any]:
        return change(LineTask.generate(self, seed, difficulty))

    return generate


def frame(change: Callable[[pd.DataFrame, LineTruth], pd.DataFrame]) -> Callable[..., Dataset[Any]]:
    return data(lambda one: Dataset(change(one.frame, one.truth), one.truth, one.description))


def _stashing() -> dict[str, Any]:
    """Return members whose prior states the truth of the data that were generated last."""

    def generate(self: Any, seed: int, difficulty: Difficulty = "medium") -> Dataset[LineTruth]:
        made = LineTask.generate(self, seed, difficulty)
        self.__dict__["slope"] = made.truth.slope
        return made

    def prior(self: Any, *_: Any) -> LineFindings:
        return LineFindings(slope=self.__dict__.get("slope"))

    return {"generate": generate, "prior": prior}


class Required(BaseModel):
    slope: float = Field(description="slope")


class Undescribed(BaseModel):
    slope: float | None = None


class BadExample(BaseModel):
    slope: float | None = Field(None, description="slope", examples=["steep"])


class Unschemed(BaseModel):
    slope: type | None = Field(None, description="slope")


class Wider(LineFindings):
    colour: str = "red"


def _with_attrs(table: pd.DataFrame, truth: LineTruth) -> pd.DataFrame:
    table.attrs["slope"] = truth.slope
    return table


def _with_global_noise(table: pd.DataFrame, truth: LineTruth) -> pd.DataFrame:
    return table.assign(x=table["x"] + np.random.rand())


def _spoiling_the_truth(self: LineTask, findings: LineFindings, truth: LineTruth) -> tuple[Credit, ...]:
    credits = LineTask.score(self, findings, truth)
    truth.slope += 1
    return credits


def _dividing(self: LineTask, findings: LineFindings, truth: LineTruth) -> tuple[Credit, ...]:
    if findings.slope is not None:
        1 / (findings.slope - truth.slope)
    return LineTask.score(self, findings, truth)


_CALLS = iter(range(10**6))
EMPTY: Any = {}


@pytest.mark.parametrize(
    ("rule", "says", "members"),
    [
        ("attributes", "'title' must be a text", {"title": " "}),
        ("attributes", "lower-case letters", {"name": "Line task"}),
        ("attributes", "must be a pydantic model", {"findings": dict}),
        ("attributes", "must be optional", {"findings": Required}),
        ("attributes", "must have a description", {"findings": Undescribed}),
        ("attributes", "example in the findings schema is wrong", {"findings": BadExample}),
        ("attributes", "have no JSON schema", {"findings": Unschemed}),
        ("generate", "raised ZeroDivisionError", {"generate": lambda self, seed, difficulty: 1 / 0}),
        ("generate", "raised SystemExit", {"generate": lambda self, seed, difficulty: exit(3)}),
        ("generate", "raised MemoryError", {"generate": lambda *_: (_ for _ in ()).throw(MemoryError())}),
        (
            "generate",
            "raised ValueError: Seed must be between 0 and 2**32 - 1",
            {"generate": lambda self, seed, difficulty: (np.random.RandomState(seed), LineTask().generate(seed))[1]},
        ),
        ("generate", "must return a Dataset", {"generate": lambda self, seed, difficulty: None}),
        (
            "generate",
            "frame must be a DataFrame, not dict",
            {"generate": lambda *_: Dataset(EMPTY, LineTruth(slope=1), "")},
        ),
        ("generate", "truth must be a BaseModel", {"generate": data(lambda one: Dataset(one.frame, EMPTY, ""))}),
        ("same seed", "gave different data", {"generate": frame(lambda table, truth: table.assign(x=next(_CALLS)))}),
        ("same seed", "not from global random numbers", {"generate": frame(_with_global_noise)}),
        ("other seed", "same data", {"generate": lambda self, seed, difficulty: LineTask().generate(0)}),
        (
            "other seed",
            "report of another seed earns 1.000 on average (medium 1.00), more than 0.2",
            {"score": lambda *_: (Credit("slope", 1.0, 1, ""),)},
        ),
        ("prior", "no prior is defined", {"prior": Task.prior}),
        (
            "prior",
            "earns 1.000 on average (medium 1.00), more than 0.15",
            {"score": lambda *_: (Credit("slope", 1.0, 1, ""),)},
        ),
        ("prior", "must return LineFindings, not dict", {"prior": lambda *_: {}}),
        ("prior", "can't be read back", {"prior": lambda *_: Wider(slope=1.0)}),
        ("prior", "on a second call", {"prior": lambda *_: LineFindings(slope=next(_CALLS))}),
        ("prior", "on a second call", {"prior": lambda *_: LineFindings(slope=random.random())}),
        ("prior", "on a new instance", _stashing()),
        ("prior", "raised RuntimeError", {"prior": lambda *_: (_ for _ in ()).throw(RuntimeError("no"))}),
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
        ("leaks", "'slope' of the truth", {"generate": frame(lambda table, truth: table.assign(k=truth.slope))}),
        ("truth", "changes the truth", {"score": _spoiling_the_truth}),
        ("score", "the oracle's report scores 0.000", {"oracle": lambda self, truth: LineFindings(slope=1)}),
        ("score", "can't be read back", {"oracle": lambda self, truth: Wider(slope=truth.slope)}),
        ("score", "oracle must return LineFindings, not dict", {"oracle": lambda self, truth: {"slope": 1}}),
        ("score", "report without findings scores", {"score": lambda *_: (Credit("slope", 1.0, 1, ""),)}),
        ("score", "credit in [0, 1]", {"score": lambda *_: (Credit("slope", 1.5, 1, ""),)}),
        ("score", "positive weight", {"score": lambda *_: (Credit("slope", 1.0, 0, ""),)}),
        ("score", "each finding once", {"score": lambda *_: ()}),
        ("score", "a tuple of Credit, not 0.5", {"score": lambda *_: 0.5}),
        ("score", "raised RuntimeError", {"score": lambda *_: (_ for _ in ()).throw(RuntimeError("no"))}),
        ("checks", "at least one check", {"checks": lambda self, truth: ()}),
        ("checks", "a tuple of Check, not 'slope'", {"checks": lambda self, truth: "slope"}),
        ("checks", "fails for the template", {"checks": lambda self, truth: (Check("a", says_all("zebra")),)}),
        ("checks", "holds for an empty text", {"checks": lambda self, truth: (Check("a", lambda text: True),)}),
        ("checks", "raised", {"checks": lambda self, truth: (Check("a", lambda text: bool(text.encode())),)}),
    ],
)
def test_each_way_of_being_wrong_is_caught(
    rule: str, says: str, members: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rule in RULES
    monkeypatch.setattr("labmates_author.tasks.examine.DIFFICULTIES", ("medium",))
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


def test_what_is_raised_is_told_with_the_line_of_the_task_that_raised_it() -> None:
    problems = check_task(broken(score=_dividing), seeds=(0, 1))
    line = _dividing.__code__.co_firstlineno + 2
    assert any(f"(test_task_conformance.py, line {line})" in one.text for one in problems)


def test_the_global_random_numbers_are_left_as_they_were() -> None:
    random.seed(5)
    np.random.seed(5)
    check_task(LineTask(), seeds=(0, 1))
    after = random.random(), np.random.rand()
    random.seed(5)
    np.random.seed(5)
    assert after == (random.random(), np.random.rand())


def test_one_seed_is_not_enough_to_compare() -> None:
    with pytest.raises(UsageError, match="two different seeds"):
        check_task(LineTask(), seeds=(4, 4))


def test_odd_sizes_are_warnings_not_errors() -> None:
    problems = check_task(broken(generate=frame(lambda table, truth: table.head(60))))
    assert {one.severity for one in problems if "rows" in one.text} == {"warning"}
    assert Problem("a", "b").severity == "error"
    assert str(Problem("a", "b", where="seed 0, easy")) == "a: b (seed 0, easy)"


def test_a_slow_generator_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates_author.tasks.data_rules.SECONDS_MOST", -1.0)
    slow = [one for one in check_task(LineTask(), seeds=(0, 1)) if one.rule == "generate"]
    assert {one.severity for one in slow} == {"error"}
    assert "s of the processor, more than -1 s" in slow[0].text


@pytest.mark.parametrize("name", ["anomaly", "ecology", "biomarker", "geospatial"])
def test_our_tasks_score_odd_findings_that_the_schema_allows(name: str) -> None:
    task = get_task(name)
    truth = task.generate(0).truth
    for findings in odd_findings(task.oracle(truth)):
        assert not list(faults(task.score(findings, truth))), findings


def test_a_task_is_found_by_name_and_an_unknown_one_named() -> None:
    assert get_task("ecology").name == "ecology"
    assert {"ecology", "anomaly"} <= set(TASKS)
    with pytest.raises(UsageError, match=r"unknown task 'ecolgy'.*Did you mean 'ecology'"):
        get_task("ecolgy")


class Incomplete(Task[LineTruth, LineFindings]):
    name = "incomplete"


@pytest.mark.parametrize(
    ("found", "message"), [(LineTruth, "must be a subclass"), (Incomplete, "can't be instantiated")]
)
def test_what_is_no_complete_task_is_a_usage_error(found: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_task(found)


def test_the_default_summary_tells_the_oracle() -> None:
    assert LineTask().summary(LineTruth(slope=2.5)) == "The finding slope is 2.5."
