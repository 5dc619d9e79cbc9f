"""Tasks of a table and a file of answers: scored, checked, and refused with the place of what is wrong."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.tasks.base import Task, accuracy
from labmates.tasks.conformance import check_task
from labmates.tasks.registry import load_task
from labmates.tasks.table import read_answers, read_table
from tests.support.command_line import Labmates

TABLE = "load,extension\n10,4\n20,8.1\n30,11.9\n"
ANSWERS = """
title: Springs
brief: How stiff is the spring?
description: "load: in newtons. extension: in millimetres."
answers:
  stiffness: {about: load per extension in N/mm, value: 2.5, tolerance: 0.02, weight: 3}
  softens: {about: whether it softens, value: false, guess: true}
  maker: {about: who made it, value: Alpen}
  users: {about: who used it, value: [Ana, Bo]}
"""


@pytest.fixture
def springs(labmates: Labmates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task[Any, Any]]:
    """A task that the command line made of a table and its answers."""
    (tmp_path / "data in.csv").write_text(TABLE)
    (tmp_path / "in.yaml").write_text(ANSWERS)
    done = labmates("tasks", "new", "springs", "--csv", "data in.csv", "--answers", "in.yaml")
    assert done.code == 0
    assert "wrote springs/labmates_springs/answers.yaml" in done.out
    assert "Without installing it: uvx --with ./springs --from 'labmates[lab]' labmates …" in done.out
    monkeypatch.setattr("sys.path", sys.path[:])
    yield load_task(f"{tmp_path}/springs/labmates_springs/task.py:SpringsTask")
    for name in ("labmates_springs", "labmates_springs.task"):
        del sys.modules[name]
    importlib.invalidate_caches()


def test_the_task_keeps_the_rules_and_warns_that_its_data_never_change(springs: Task[Any, Any]) -> None:
    problems = check_task(springs)
    assert not [problem for problem in problems if problem.severity == "error"]
    assert "every seed has the same data" in "\n".join(map(str, problems))
    assert springs.generate(1).csv() == springs.generate(2, "hard").csv() == TABLE.replace("10,4", "10,4.0").encode()


@pytest.mark.parametrize(
    ("stated", "earned"),
    [
        ({}, 0),
        ({"stiffness": 2.54, "softens": False, "maker": "ALPEN.", "users": ["Bo", "ana"]}, 1),
        ({"stiffness": 2.65}, 3 / 6 * 0.5),
        ({"stiffness": float("nan"), "softens": True, "maker": "Brenta", "users": ["Cy"]}, 0),
        ({"users": ["Ana"]}, 1 / 6 * 2 / 3),
    ],
)
def test_findings_earn_credit_by_their_distance_from_the_answers(
    springs: Task[Any, Any], stated: dict[str, Any], earned: float
) -> None:
    truth = springs.generate(0).truth
    assert accuracy(springs.score(springs.findings(**stated), truth)) == pytest.approx(earned)
    assert accuracy(springs.score(springs.prior((), "easy"), truth)) == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: Springs", "", "title: Field required"),
        ("value: 2.5", "value: .inf", "in.yaml:6: answers.stiffness.value: expected a finite number, true, false"),
        ("value: Alpen", "value: {a: 1}", "answers.maker.value: expected a finite number"),
        ("value: [Ana, Bo]", "value: []", "answers.users.value: expected a finite number"),
        ("guess: true", "guess: 3", "answers.softens: the guess must be of the same type as the value"),
        ("tolerance: 0.02", "tolerance: 0", "answers.stiffness.tolerance: Input should be greater than 0"),
        ("  maker:", "  Maker:", "expected a name of lower-case letters"),
        ("  maker:", "  json:", "expected a name of lower-case letters"),
        ("weight: 3", "wieght: 3", "answers.stiffness.wieght: Extra inputs are not permitted"),
    ],
)
def test_invalid_answers_are_refused_with_their_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "in.yaml").write_text(ANSWERS.replace(old, new))
    with pytest.raises(UsageError) as refused:
        read_answers(tmp_path / "in.yaml")
    assert said in str(refused.value)


@pytest.mark.parametrize(("content", "said"), [("a,b\n", "has no rows"), ("", "can't read the table")])
def test_a_table_without_rows_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "in.csv").write_text(content)
    with pytest.raises(UsageError, match=said):
        read_table(tmp_path / "in.csv")


def test_one_file_without_the_other_is_refused(labmates: Labmates, tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(ANSWERS)
    for arguments in (("--answers", "in.yaml"), ("--answers", "in.yaml", "--csv", "nowhere.csv")):
        done = labmates("tasks", "new", "springs", *arguments)
        assert done.code == 2
        assert "csv" in done.err
        assert not (tmp_path / "springs").exists()
