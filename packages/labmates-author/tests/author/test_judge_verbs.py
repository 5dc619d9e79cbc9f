"""``labmates judges new`` and ``labmates judges check``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labmates_author.judges import RULES
from tests.support.command_line import Labmates
from tests.support.plugins import ROOT


def test_a_judge_is_checked_on_a_sample(labmates: Labmates) -> None:
    sample = labmates("judges", "check", "heuristic")
    assert sample.code == 0
    assert [line.split()[0] for line in sample.out.splitlines()[1 : 1 + len(RULES)]] == ["ok"] * len(RULES)
    assert "another's oracle" in sample.out
    [record] = labmates("judges", "check", "verified", "--json").records
    assert record["passed"]
    assert [rule["rule"] for rule in record["rules"]] == list(RULES)
    assert record["reports"][0]["scores"]["accuracy"] == 1


def test_a_broken_judge_fails_the_check(labmates: Labmates, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "class Bad:\n  name = version = 'bad'\n  async def score(self, report): return 1\n"
    )
    done = labmates("judges", "check", "bad.py")
    assert done.code == 1
    assert "error     scores        it returned int instead of a list of Score" in done.out
    assert "bad.py does not pass the check" in done.err


def test_a_judge_that_hangs_when_it_is_created_fails_the_check(labmates: Labmates, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("class Bad:\n  def __init__(self):\n    while True: pass\n")
    done = labmates("judges", "check", "bad.py:Bad", "--step-timeout", "0.2")
    assert done.code == 1
    assert "hangs: raised TimeoutError: it did not end within 0.2 s" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "nowhere.py"), "there is no file 'nowhere.py'; give a judge's name, path/to/file.py:Class"),
        (("check", "scripted:referee"), "try: labmates judge RUN --judge scripted:referee"),
        (("check", "heuristic", "--task", "alchemy"), "unknown task 'alchemy'"),
        (("check", "heuristic", "--step-timeout", "0"), "--step-timeout"),
        (("new", "heuristic"), "there is a judge 'heuristic' already, of labmates"),
        (("new", "My Judge"), "can't be the name of a judge"),
    ],
)
def test_wrong_input_is_told(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    done = labmates("judges", *arguments)
    assert done.code == 2
    assert said in " ".join(done.err.split())


@pytest.mark.slow("packages/labmates-author/tests")
def test_a_new_package_passes_the_check_and_its_own_test(labmates: Labmates, tmp_path: Path) -> None:
    done = labmates("judges", "new", "clarity")
    assert "labmates judge RUN --judge clarity" in done.out
    folder = tmp_path / "clarity"
    texts = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert not [word for word in ("my_judge", "my-judge", "MyJudge", "My judge") if word in texts]
    assert 'clarity = "labmates_clarity.judge:ClarityJudge"' in texts
    checked = labmates("judges", "check", "clarity/labmates_clarity/judge.py")
    assert checked.code == 0
    assert "passed: 0 errors, 0 warnings" in checked.out
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert b"4 passed" in tested.stdout, tested.stdout
