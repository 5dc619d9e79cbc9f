"""``labmates tasks``: listing goes on whatever plug-ins do, and reports are scored."""

from __future__ import annotations

import io
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


@pytest.mark.parametrize(
    "name",
    [
        "ecology",
        "anomaly",
        "biomarker",
        pytest.param("geospatial", marks=pytest.mark.slow("tests/cli/test_cli_tasks.py")),
    ],
)
def test_the_printed_oracle_scores_one_and_the_printed_prior_has_no_skill(labmates: Labmates, name: str) -> None:
    where = ("--seed", "3", "--difficulty", "easy")
    for verb, skill in (("oracle", 1.0), ("prior", 0.0)):
        printed = labmates("tasks", verb, name, *where)
        assert printed.code == 0
        (labmates.folder / "report.md").write_text(printed.out, "utf-8")
        scored = labmates("tasks", "score", name, "report.md", *where, "--json")
        assert scored.code == 0
        [record] = scored.records
        assert record["skill"] == pytest.approx(skill)
        assert {"accuracy", "skill", "repaired", "findings", "problems"} <= record.keys()
        assert all(set(one) == {"finding", "credit", "weight", "reason"} for one in record["findings"])
    other = labmates("tasks", "score", name, "report.md", "--seed", "4", "--difficulty", "easy", "--json")
    assert other.records[0]["accuracy"] < 0.5


def test_a_report_is_scored_as_a_paper_is_with_what_was_mended_and_left_out(
    labmates: Labmates, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"\xef\xbb\xbf# Paper\n```json\n{'n_sensors': '9', 'mood': 1,}\n```\n"
    (labmates.folder / "report.md").write_bytes(text)
    done = labmates("tasks", "score", "anomaly", "report.md", "--seed", "3")
    assert done.code == 0
    assert "n_sensors" in done.out
    assert "trailing comma" in done.out
    assert "'mood'" in done.out
    assert done.out.splitlines()[-1].startswith("skill     ")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert labmates("tasks", "score", "anomaly", "-", "--seed", "3").out == done.out


def test_a_run_is_scored_and_solved_on_its_own_data(labmates: Labmates) -> None:
    chosen = ("--task", "anomaly", "--difficulty", "easy", "--model", "scripted:diligent", "--solo")
    [run] = labmates("run", "science", *chosen, "--json").records
    scored = labmates("tasks", "score", "--run", run["id"], "--json")
    [record] = scored.records
    assert record["accuracy"] == pytest.approx(run["metrics"]["accuracy"])
    assert (record["task"], record["run"], record["difficulty"]) == ("anomaly", run["id"], "easy")
    solved = labmates("tasks", "oracle", "--run", run["id"])
    assert solved.out.startswith("# ")
    other = labmates("tasks", "oracle", "anomaly", "--seed", str(run["seed"]), "--difficulty", "easy")
    assert solved.out != other.out


def test_tasks_that_are_not_installed_are_scored_by_reference(labmates: Labmates) -> None:
    (labmates.folder / "mine.py").write_text(CODE)
    reference = "mine.py:Good"
    report = labmates("tasks", "oracle", reference, "--seed", "1", PYTHONPATH=str(ROOT))
    assert report.code == 0, report.err
    (labmates.folder / "report.md").write_text(report.out)
    done = labmates("tasks", "score", reference, "report.md", "--seed", "1", "--json", PYTHONPATH=str(ROOT))
    assert (done.records[0]["task"], done.records[0]["accuracy"], done.records[0]["skill"]) == ("good", 1.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("score", "ecologi", "report.md", "--seed", "1"), "unknown task 'ecologi'"),
        (("score", "ecology", "missing.md", "--seed", "1"), "REPORT: can't read 'missing.md': No such file"),
        (("score", "ecology", ".", "--seed", "1"), "REPORT: can't read '.': Is a directory"),
        (("score", "ecology", "binary", "--seed", "1"), "REPORT: can't read 'binary': it is not UTF-8 text (byte 1)"),
        (("score", "ecology", "report.md"), "--seed is missing"),
        (("score", "ecology", "--seed", "1"), "REPORT is missing"),
        (("oracle", "--seed", "1"), "TASK is missing"),
        (("oracle", "ecology", "--run", "abc"), "--run has a task and a data set of its own"),
        (("score", "--run", "abc"), "does not exist yet"),
        (("score", "ecology", "report.md", "--seed", "-1"), "--seed"),
        (("oracle", "ecology", "--seed", "1", "--difficulty", "mild"), "'mild' is not one of"),
        (("oracle", "nowhere.py:Task", "--seed", "1"), "there is no file 'nowhere.py'"),
        (("oracle", "broken.py:Task", "--seed", "1"), "the task 'broken.py:Task' raised ZeroDivisionError"),
        (("prior", "no_such_module:Task", "--seed", "1"), "raised ModuleNotFoundError"),
    ],
)
def test_wrong_input_for_printed_and_scored_reports_is_named(
    labmates: Labmates, arguments: tuple[str, ...], says: str
) -> None:
    (labmates.folder / "report.md").write_text("Nothing.")
    (labmates.folder / "binary").write_bytes(b"a\xff\xfe")
    (labmates.folder / "broken.py").write_text("1 / 0")
    done = labmates("tasks", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_a_salt_gives_printed_and_scored_reports_other_data(labmates: Labmates) -> None:
    salted = {"LABMATES_SALT": "correct horse battery staple"}
    public, private = (labmates("tasks", "oracle", "anomaly", "--seed", "3", **salt) for salt in ({}, salted))
    assert public.out != private.out
    (labmates.folder / "report.md").write_text(private.out, "utf-8")
    for salt, accuracy in (({}, 0.2), (salted, 1.0)):
        done = labmates("tasks", "score", "anomaly", "report.md", "--seed", "3", "--json", **salt)
        assert done.records[0]["accuracy"] == pytest.approx(accuracy, abs=0.2 if not salt else 1e-9)
    short = labmates("tasks", "show", "anomaly", LABMATES_SALT="short")
    assert (short.code, short.out) == (2, "")
    assert "LABMATES_SALT: a salt of 5 characters" in short.err


def test_a_task_is_shown_with_what_guessing_earns(labmates: Labmates) -> None:
    done = labmates("tasks", "show", "geospatial", "--difficulty", "easy")
    assert done.code == 0
    told = done.out.rpartition("Score of a guess")[2]
    assert '"range_m":910.0' in told
    assert "a skill of 0" in told
