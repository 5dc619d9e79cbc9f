"""A task on trial: whatever it does is told, also what differs in another process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tests.support.line_task  # noqa: F401  # loaded once: numpy can't be loaded again
from labmates.errors import UsageError
from labmates.tasks.registry import load_task, resolve_reference
from labmates_author.tasks.examine import TRIAL_RULES, try_task
from labmates_author.trial import Problem, Trial
from tests.support.plugins import ROOT, install

HEAD = """import os, sys, time, random
from tests.support.line_task import *
"""
Write = Callable[..., str]


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Leave the import path as it is, and no module of the test's folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    of_test = [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]
    for name in of_test:
        del sys.modules[name]


@pytest.fixture
def write(restored: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a task that does something before it generates, and return its reference."""
    # Saves time: there is one trial for each way of being wrong.
    monkeypatch.setattr("labmates_author.tasks.examine.DIFFICULTIES", ("easy",))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path)]))

    def write_one(does: str = "pass", top: str = "pass", after: str = "pass") -> str:
        path = tmp_path / "odd.py"
        path.write_text(
            f"{HEAD}{top}\nclass OddTask(LineTask):\n    name = 'odd'\n"
            f"    def generate(self, seed, difficulty='medium'):\n        {does}\n"
            f"        data = super().generate(seed, difficulty)\n        {after}\n        return data\n"
        )
        return f"{path}:OddTask"

    return write_one


def told(trial: Trial, rule: str) -> list[str]:
    return [str(problem) for problem in trial.problems if problem.rule == rule]


def test_a_good_task_passes_every_rule(write: Write) -> None:
    steps: list[str] = []
    trial = try_task(write("print('noise')"), (0, 1), watch=steps.append)
    assert trial.problems == []
    assert trial.passed
    assert trial.tried == TRIAL_RULES.keys()
    assert "score seed 1, easy" in steps


def test_what_hangs_is_named_with_rule_and_data_set_and_ends_the_trial(write: Write) -> None:
    trial = try_task(write("time.sleep(60)"), (0, 1), step_seconds=1)
    [said] = told(trial, "generate")
    assert "hangs: raised TimeoutError: it did not end within 1 s (odd.py, line " in said
    assert said.endswith("(seed 0, easy)")
    assert trial.tried == {"load", "attributes", "generate"}
    assert not trial.passed


def test_what_ends_another_process_is_told(write: Write) -> None:
    trial = try_task(write("'child' in sys.argv[0] and (sys.stderr.write('last words\\n'), os._exit(3))"), (0, 1))
    assert told(trial, "processes") == ["processes: another process fails: last words"]


def test_what_a_data_set_raises_leaves_the_others_to_be_looked_at(write: Write) -> None:
    trial = try_task(write("[len, sys.exit, len][seed]([4, [4], 4][seed]) if seed < 3 else 0"), (0, 1, 2))
    assert [said.rpartition(" (odd.py")[0] for said in told(trial, "generate")] == [
        "generate: raised TypeError: object of type 'int' has no len()",
        "generate: raised SystemExit: [4]",
        "generate: raised TypeError: object of type 'int' has no len()",
    ]
    assert not trial.passed


def test_what_differs_between_processes_is_found(write: Write) -> None:
    after = (
        "time.tzset(); data = Dataset(data.frame.assign(z=max({'a', 'b', 'c', 'd', 'e'}, key=hash)), "
        "LineTruth(slope=data.truth.slope + time.localtime(0).tm_hour), ' '.join({'week', 'weight', 'width', 'worth'}))"
    )
    trial = try_task(write(after=after), (0, 1))
    assert not told(trial, "same seed")
    for one in told(trial, "processes"):
        assert "another process gives different data, description, truth" in one


def test_what_depends_on_the_order_of_seeds_is_found(write: Write) -> None:
    trial = try_task(write(top="STATE = {}", after="data.frame['z'] = STATE.setdefault(seed, len(STATE))"), (0, 1))
    assert any("another process gives different data" in one for one in told(trial, "processes"))
    assert not told(trial, "same seed")


@pytest.mark.parametrize(
    ("top", "says"),
    [
        ("1 / 0", "raised ZeroDivisionError: division by zero (odd.py, line 3)"),
        ("time.sleep(60)", "hangs"),
        ("from nowhere import thing", "raised ModuleNotFoundError: No module named 'nowhere'"),
        ("LineTask = type('L', (LineTask,), {'__init__': lambda self, more: None})", "the task can't be instantiated"),
    ],
)
def test_a_task_that_can_not_be_loaded_is_told(write: Write, top: str, says: str) -> None:
    trial = try_task(write(top=top), (0, 1), step_seconds=1 if "sleep" in top else 60)
    assert says in " ".join(told(trial, "load"))
    assert trial.tried == {"load"}
    assert not trial.passed


def test_a_registered_task_must_bear_the_name_of_its_entry_point(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    install(tmp_path, "odd-tasks", {"labmates.tasks": {"strange": "odd:OddTask"}}, {})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("labmates.tasks.registry.TASKS._plugins", None)
    trial = try_task("strange", (0, 1))
    assert trial.problems == [Problem("load", "the entry point is 'strange', but the task's name is 'odd'")]


def test_two_seeds_are_needed() -> None:
    with pytest.raises(UsageError, match="two different seeds"):
        try_task("ecology", (1, 1))


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("ecolgy", "unknown task 'ecolgy'.*Did you mean 'ecology'"),
        ("nowhere.py:Task", "there is no file 'nowhere.py'"),
        ("nowhere.py", "there is no file 'nowhere.py'"),
    ],
)
def test_a_reference_to_nothing_is_a_usage_error(reference: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        resolve_reference(reference)


@pytest.mark.usefixtures("restored")
def test_a_task_is_found_in_a_file_a_package_and_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "names.py").write_text("TITLE = 'From the package'")
    code = "from tests.support.line_task import LineTask\nclass Mine(LineTask):\n    title = TITLE\n"
    (package / "task.py").write_text(f"from .names import TITLE\n{code}")
    (tmp_path / "random.py").write_text(f"TITLE = 'From a file'\n{code}")
    assert load_task(resolve_reference(f"{package / 'task.py'}:Mine")).title == "From the package"
    assert load_task(resolve_reference(f"{package / 'task.py'}")).title == "From the package"
    assert load_task(resolve_reference(f"{tmp_path / 'random.py'}:Mine")).title == "From a file"
    monkeypatch.chdir(tmp_path)
    assert load_task("outer.inner.task:Mine").title == "From the package"
    assert load_task("ecology").name == "ecology"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("code", "attribute", "says"),
    [
        ("", ":Mine", "has no 'Mine'; its tasks are: none"),
        ("class A(LineTask): pass", ":Mine", "its tasks are: A"),
        ("class A(LineTask): pass\nclass B(LineTask): pass", "", "choose a task of .*: A, B"),
        ("", "", "it has none"),
        ("Mine = 3", ":Mine", "must be a subclass of"),
    ],
)
def test_a_missing_task_in_a_file_is_told_with_those_that_are_there(
    tmp_path: Path, code: str, attribute: str, says: str
) -> None:
    (tmp_path / "mine.py").write_text(f"from tests.support.line_task import LineTask\n{code}")
    with pytest.raises(UsageError, match=says):
        load_task(f"{tmp_path / 'mine.py'}:{attribute.removeprefix(':')}")
