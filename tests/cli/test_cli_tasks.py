"""``labmates tasks``: listing goes on whatever plug-ins do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import Labmates
from tests.support.plugins import ROOT, install

CODE = """
from tests.support.line_task import LineTask

NO_TASK = {}

class Good(LineTask):
    name = "good"

class Raising(LineTask):
    name = "raising"
    def __init__(self): raise ValueError("not today")

class Grumpy(LineTask):
    name = "grumpy"
    def generate(self, seed, difficulty="medium"): raise ValueError("no data")
"""
POINTS = {
    "labmates.tasks": {
        "good": "plug:Good",
        "raising": "plug:Raising",
        "grumpy": "plug:Grumpy",
        "missing": "plug:Nothing",
        "wrong": "plug:NO_TASK",
        "ecology": "plug:Good",
    },
    "labmates.models": {"gone": "no_such_module:Model"},
}


@pytest.fixture
def plugins(tmp_path: Path) -> str:
    """Install a package with a good and several broken entries; return the import path that has it."""
    return os.pathsep.join([str(install(tmp_path / "site", "odd-tasks", POINTS, {"plug": CODE})), str(ROOT)])


def test_the_list_goes_on_where_plug_ins_are_broken_and_names_these(labmates: Labmates, plugins: str) -> None:
    done = labmates("tasks", PYTHONPATH=plugins)
    assert done.code == 0
    lines = [line.split()[0] for line in done.out.splitlines()]
    assert {"anomaly", "ecology", "good"} <= set(lines)
    assert "A line  (odd-tasks 1.0)" in done.out
    for name, why in [
        ("raising", "can't be used: ValueError: not today"),
        ("missing", "can't be imported: AttributeError"),
        ("wrong", "can't be used: a task must be a subclass"),
    ]:
        assert name not in lines
        assert f"labmates: the task '{name}' (odd-tasks 1.0, entry point labmates.tasks: {name} = plug:" in done.err
        assert why in done.err
    assert "the task 'ecology' is labmates' own; that of odd-tasks 1.0 is ignored" in done.err
    assert "Species" in next(line for line in done.out.splitlines() if line.startswith("ecology"))


def test_the_list_as_json_tells_the_package_of_each_task(labmates: Labmates, plugins: str) -> None:
    records = {record["name"]: record for record in labmates("tasks", "--json", PYTHONPATH=plugins).records}
    assert records["good"] == {"name": "good", "title": "A line", "version": "1", "package": "odd-tasks 1.0"}
    assert records["ecology"]["package"] is None


def test_the_list_of_models_goes_on_where_a_baseline_is_broken(labmates: Labmates, plugins: str) -> None:
    done = labmates("models", PYTHONPATH=plugins)
    assert done.code == 0
    assert "scripted:diligent" in done.out
    assert "the scripted baseline 'gone' (odd-tasks 1.0, entry point labmates.models: gone = " in done.err


@pytest.mark.parametrize(
    "arguments", [["tasks", "show", "grumpy"], ["run", "science", "--task", "raising", "--model", "scripted:silent"]]
)
def test_a_broken_task_that_is_asked_for_exits_with_2_and_names_its_package(
    labmates: Labmates, plugins: str, arguments: list[str]
) -> None:
    done = labmates(*arguments, PYTHONPATH=plugins)
    assert done.code == 2
    assert "odd-tasks 1.0, entry point labmates.tasks" in done.err
    assert "ValueError" in done.err


def test_a_task_is_shown_with_what_guessing_earns(labmates: Labmates) -> None:
    done = labmates("tasks", "show", "geospatial", "--difficulty", "easy")
    assert done.code == 0
    told = done.out.rpartition("Score of a guess")[2]
    assert '"range_m":910.0' in told
    assert "a skill of 0" in told
