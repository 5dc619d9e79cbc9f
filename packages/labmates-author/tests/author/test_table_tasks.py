"""Tasks of a table and a file of answers: scored, checked, and refused with the place of what is wrong."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.tasks.base import Task, accuracy
from labmates.tasks.registry import TASKS, load_task
from labmates.tasks.schema import findings_example
from labmates.tasks.table import read_answers, read_table
from labmates.workflows.protocol.experiment import make_condition
from labmates_author.tasks import check_task
from labmates_author.tasks.leaks import held_answers
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
  creep: {about: creep in mm, value: 0, absolute: 0.1}
"""


@pytest.fixture
def springs(labmates: Labmates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task[Any, Any]]:
    """A task that the command line made of a table and its answers."""
    (tmp_path / "data in.csv").write_text(TABLE)
    (tmp_path / "in.yaml").write_text(ANSWERS)
    done = labmates("tasks", "new", "springs", "--csv", "data in.csv", "--answers", "in.yaml")
    assert done.code == 0
    assert "wrote springs/labmates_springs/answers.yaml" in done.out
    monkeypatch.setattr("sys.path", sys.path[:])
    yield load_task(f"{tmp_path}/springs/labmates_springs/task.py:SpringsTask")
    for name in ("labmates_springs", "labmates_springs.task"):
        del sys.modules[name]
    importlib.invalidate_caches()


def test_the_task_keeps_the_rules_and_warns_that_its_data_never_change(springs: Task[Any, Any]) -> None:
    [warning] = check_task(springs)
    assert warning.severity == "warning"
    assert "every seed has the same data" in str(warning)
    assert springs.generate(1).csv() == springs.generate(2, "hard").csv() == TABLE.replace("10,4", "10,4.0").encode()


@pytest.mark.parametrize(
    ("stated", "earned"),
    [
        ({}, 0),
        ({"stiffness": 2.54, "softens": False, "maker": "ALPEN.", "users": ["Bo", "ana"], "creep": 0.1}, 1),
        ({"stiffness": 2.65}, 3 / 7 * 0.5),
        ({"stiffness": -2.5, "creep": -0.3}, 1 / 7 * 0.5),
        ({"stiffness": float("nan"), "softens": True, "maker": "Brenta", "users": ["Cy"]}, 0),
        ({"users": ["Ana"]}, 1 / 7 * 2 / 3),
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
        ("title: Springs", "", "title: this key is missing"),
        ("value: 2.5", "value: .inf", "in.yaml:6: answers.stiffness.value: expected a finite number, true, false"),
        ("value: Alpen", "value: {a: 1}", "answers.maker.value: expected a finite number"),
        ("value: [Ana, Bo]", "value: []", "answers.users.value: expected a finite number"),
        ("guess: true", "guess: 3", "answers.softens: the guess must be of the same type as the value"),
        ("tolerance: 0.02", "tolerance: 0", "answers.stiffness.tolerance: must be above 0"),
        ("  maker:", "  Maker:", "expected a name of lower-case letters"),
        ("  maker:", "  json:", "expected a name of lower-case letters"),
        ("value: 0, absolute: 0.1", "value: 0", "answers.creep: no error is relative to 0: give absolute"),
        ("absolute: 0.1", "absolute: 0.1, tolerance: 0.1", "answers.creep: give tolerance (relative) or absolute"),
        ("value: Alpen", "value: Alpen, tolerance: 0.1", "answers.maker: only numbers have a tolerance"),
        ("weight: 3", "wieght: 3", "answers.stiffness.wieght: unknown key"),
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


def load_springs(folder: Path) -> Task[Any, Any]:
    return load_task(f"{folder}/springs/labmates_springs/task.py:SpringsTask")


def test_other_content_under_the_same_version_is_refused(springs: Task[Any, Any], tmp_path: Path) -> None:
    version = springs.version
    assert version.startswith("1+")
    place = tmp_path / "springs" / "labmates_springs" / "data.csv"
    place.write_text(TABLE.replace("8.1", "8.2"))
    for name in ("labmates_springs", "labmates_springs.task"):
        del sys.modules[name]
    with pytest.raises(UsageError, match="the table or the answers have changed, but version is still '1'"):
        load_springs(tmp_path)
    answers = place.with_name("answers.yaml")
    answers.write_text(answers.read_text() + 'version: "2"\n')
    changed = load_springs(tmp_path)
    assert changed.version.startswith("2+")
    assert changed.version.partition("+")[2] != version.partition("+")[2]


@pytest.mark.parametrize("column", ["2.5,2.5,2.5", "2.5,0,2.5", "Alpen,Alpen,Alpen"])
def test_a_column_that_holds_an_answer_is_found(springs: Task[Any, Any], column: str) -> None:
    data = springs.generate(0)
    table = data.frame.assign(note=[float(v) if v[0].isdigit() else v for v in column.split(",")])
    truth = data.truth.model_dump(mode="json")
    assert [place for place, _ in held_answers(table, truth)] == ["the column 'note'"]
    assert not list(held_answers(data.frame, truth))


@pytest.mark.parametrize("text", ["load;length\n10;4,5\n20;8\n", "load\tlength\n10\t4.5\n20\t8\n"])
def test_tables_with_other_separators_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    assert read_table(tmp_path / "in.csv").to_dict("list") == {"load": [10, 20], "length": [4.5, 8]}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("The stiffness of the spring is 2.52 N/mm.", {"stiffness"}),
        ("| stiffness | 2.5 |", {"stiffness"}),
        ("We report stiffness and creep in section 4.", set()),
        ("The stiffness is 3.9 N/mm. The width is 2.5 mm.", set()),
        (
            "Creep: 0.04 mm. It was made by Alpen for Bo; whether it softens is open.",
            {"creep", "maker", "users", "softens"},
        ),
    ],
)
def test_a_report_holds_a_number_only_beside_its_name(springs: Task[Any, Any], text: str, held: set[str]) -> None:
    checks = springs.checks(springs.generate(1).truth)
    assert {check.name.removesuffix(" reported") for check in checks if check.holds(text)} == held


def test_the_form_of_the_findings_shows_a_value_of_each_type(springs: Task[Any, Any]) -> None:
    form = findings_example(springs)
    assert '"stiffness": <number>' in form
    assert '"users": [<text>' in form


def test_a_difficulty_that_changes_nothing_is_refused(springs: Task[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates.tasks.registry.get_task", lambda _: springs)
    with pytest.raises(UsageError, match="difficulty: has no effect on the task springs, which has one data set"):
        make_condition("science", {"task": "springs", "difficulty": "hard", "model": "scripted:diligent"})


def test_that_seeds_change_nothing_is_told(springs: Task[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates.tasks.registry.get_task", lambda _: springs)
    own = make_condition("science", {"task": "springs", "model": "scripted:diligent"})
    assert own.doubts() == ["springs: every seed has the same data, so runs differ by their models' chance alone"]
    monkeypatch.undo()
    assert make_condition("science", {"task": "ecology", "model": "scripted:diligent"}).doubts() == []


def test_a_run_is_shown_without_a_seed_of_its_data_and_with_numbers_as_written(
    springs: Task[Any, Any], labmates: Labmates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TASKS._loaded, "springs", type(springs))
    run = ("run", "science", "--task", "springs", "--model", "scripted:hasty", "--solo")
    assert labmates(*run).code == 0
    done = labmates("show", "last")
    assert "data set of the seed" not in done.out
    assert re.search(r"creep +– +0 +0\.00", done.out)
