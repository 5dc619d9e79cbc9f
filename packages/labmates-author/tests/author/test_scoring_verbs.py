"""``labmates tasks oracle``, ``prior`` and ``score``."""

from __future__ import annotations

import io

import pytest

from tests.cli.test_cli_tasks import CODE
from tests.support.command_line import Labmates
from tests.support.plugins import ROOT


@pytest.mark.parametrize(
    "name",
    [
        "ecology",
        "anomaly",
        "biomarker",
        pytest.param("geospatial", marks=pytest.mark.slow("packages/labmates-author/tests")),
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
