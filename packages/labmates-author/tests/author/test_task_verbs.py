"""``labmates tasks new`` and ``labmates tasks check``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labmates_author.tasks.examine import TRIAL_RULES
from tests.cli.test_cli_tasks import CODE, POINTS
from tests.support.command_line import Labmates
from tests.support.plugins import ROOT, install


@pytest.fixture
def plugins(tmp_path: Path) -> str:
    """Install a package with a good and several broken entries; return the import path that has it."""
    return os.pathsep.join([str(install(tmp_path / "site", "odd-tasks", POINTS, {"plug": CODE})), str(ROOT)])


def test_checking_a_good_task_prints_a_line_for_each_rule(labmates: Labmates) -> None:
    task = f"{ROOT / 'tests' / 'support' / 'line_task.py'}:LineTask"
    done = labmates("tasks", "check", task, "--seeds", "2", PYTHONPATH=str(ROOT))
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:-1] if not line.startswith(" ")] == ["ok"] * len(
        TRIAL_RULES
    )
    assert done.out.splitlines()[-1] == "passed: 0 errors, 0 warnings"


def test_checking_a_broken_task_tells_where_it_is_wrong_and_exits_with_1(labmates: Labmates, plugins: str) -> None:
    done = labmates("tasks", "check", "grumpy", "--seeds", "2", PYTHONPATH=plugins)
    assert done.code == 1
    assert "error     generate      raised ValueError: no data (plug.py, line " in done.out
    assert "[seed 0, easy; seed 1, easy; seed 0, medium and 3 more]" in " ".join(done.out.split())
    assert "not tried score" in done.out
    assert "failed: 1 error," in done.out
    [record] = labmates("tasks", "check", "raising", "--json", PYTHONPATH=plugins).records
    assert record["passed"] is False
    assert [rule["status"] for rule in record["rules"]] == ["error"] + ["not tried"] * (len(TRIAL_RULES) - 1)
    [problem] = record["rules"][0]["problems"]
    assert "not today" in problem["text"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "alchemy"], "unknown task 'alchemy'"),
        (["check", "nowhere.py:Task"], "there is no file 'nowhere.py'"),
        (["check", "ecology", "--seeds", "1"], "--seeds"),
        (["check", "ecology", "--step-timeout", "0"], "--step-timeout"),
        (["new", "Soil-Moisture"], "can't be the name of a task: use at most 30 lower-case letters"),
        (["new", "Soil-Moisture"], "For instance 'soil_moisture'"),
        (["new", "2nd"], "beginning with a letter"),
        (["new", "a" * 31], "at most 30"),
        (["new", "ecology"], "there is a task 'ecology' already, of labmates"),
        (["new", "good"], "there is a task 'good' already, of odd-tasks 1.0"),
        (["new", "soil", "--folder", "full"], "'full' exists and is not an empty folder"),
        (["new", "soil", "--folder", "full/file"], "'full/file' exists and is not an empty folder"),
        (["new", "soil", "--folder", "/proc/nowhere"], "can't write to '/proc/nowhere'"),
    ],
)
def test_wrong_input_is_told_and_changes_nothing(
    labmates: Labmates, plugins: str, tmp_path: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    done = labmates("tasks", *arguments, PYTHONPATH=plugins)
    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert {path.name for path in tmp_path.iterdir()} == {"full", "site"}
    assert [path.read_text() for path in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.slow("packages/labmates-author/tests")
def test_a_new_package_says_what_comes_next_passes_its_test_and_the_check(labmates: Labmates, tmp_path: Path) -> None:
    (tmp_path / "my packages").mkdir()
    done = labmates("tasks", "new", "soil_moisture", "--folder", "my packages")
    assert done.code == 0
    assert "pip install -e 'my packages'" in done.out
    folder = tmp_path / "my packages"
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {
        "README.md",
        "pyproject.toml",
        "labmates_soil_moisture/__init__.py",
        *(f"labmates_soil_moisture/analysis/{name}.py" for name in ("__init__", "clean", "model", "prepare")),
        "labmates_soil_moisture/task.py",
        "tests/test_soil_moisture.py",
    }
    texts = "".join((folder / path).read_text() for path in written)
    assert not [word for word in ("my_task", "my-task", "MyTask", "My task", "MyFindings") if word in texts]
    assert 'soil_moisture = "labmates_soil_moisture.task:SoilMoistureTask"' in texts
    checked = labmates("tasks", "check", "my packages/labmates_soil_moisture/task.py", "--seeds", "2")
    assert checked.code == 0
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=folder, capture_output=True, check=False
    )
    assert b"2 passed" in tested.stdout, tested.stdout
