"""A run that ended and holds no play or no work: every kind says so, in each form, and the exit code is 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.api import load
from labmates.cli.main import run_command

GARBAGE = "scripted:garbage"
FAILING = {
    "game": ["--game", "weakest-link", "--rounds", "2", "--model", GARBAGE],
    "dilemma": ["--game", "prisoners", "--mechanism", "none", "--models", f"{GARBAGE},scripted:defect"],
    "tournament": ["--structure", "sa", "--model", GARBAGE],
    "strategies": ["--game", "public-goods", "--attitude", "selfish", "--number", "1", "--model", GARBAGE],
}
WORKING = {
    "game": ["--game", "weakest-link", "--rounds", "1", "--model", "scripted:random"],
    "dilemma": ["--game", "prisoners", "--mechanism", "none", "--models", "scripted:random,scripted:defect"],
    "tournament": ["--structure", "sa", "--model", "scripted:random", "--rounds", "2"],
    "strategies": ["--game", "public-goods", "--attitude", "selfish", "--number", "1", "--model", "scripted:author"],
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABMATES_STORE", raising=False)


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = run_command(["run", *arguments, "--json"])
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


@pytest.mark.parametrize("kind", FAILING)
def test_a_run_whose_decisions_all_fail_is_completed_and_invalid_with_exit_code_1(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, run, errors = _run(capsys, kind, *FAILING[kind])
    assert (code, run["status"], run["valid"]) == (1, "completed", False)
    assert run["invalid"]
    assert f"run {run['id']} is invalid: {run['invalid']}" in errors


@pytest.mark.parametrize("kind", WORKING)
def test_a_run_that_was_played_is_valid(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, run, errors = _run(capsys, kind, *WORKING[kind])
    assert (code, run["status"], run["valid"], run["invalid"]) == (0, "completed", True, None)
    assert "invalid" not in errors


def test_the_reason_names_the_model_that_failed_and_not_the_one_that_played(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, run, _ = _run(capsys, "dilemma", *FAILING["dilemma"])
    assert GARBAGE in run["invalid"]
    assert "scripted:defect" not in run["invalid"]


def test_a_lab_in_which_nothing_was_written_is_invalid_though_its_credits_ran_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--task", "ecology", "--difficulty", "easy", "--model", GARBAGE, "--budget", "0.03"]
    code, run, _ = _run(capsys, "science", *options, "--sandbox", "unsafe-local")
    assert (code, run["status"], run["valid"]) == (1, "exhausted", False)
    assert run["invalid"].startswith("no paper was written, and ")


def test_invalid_runs_are_marked_wherever_runs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, run, _ = _run(capsys, "game", *FAILING["game"])
    assert run_command(["show", run["id"]]) == 0
    shown = capsys.readouterr().out
    assert "completed, invalid" in shown
    assert f"Invalid: {run['invalid']}" in shown
    assert run_command(["export", "--all", "--out", "runs.csv"]) == 0
    header, row = Path("runs.csv").read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=False))
    assert cells["valid"].lower() == "false"
    frame = load("runs")
    assert list(frame["valid"]) == [False]
    assert list(frame["invalid"]) == [run["invalid"]]


def test_several_invalid_runs_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "game", *FAILING["game"], "--replicates", "2"]) == 1
    assert "2 of 2 runs are invalid" in capsys.readouterr().err


def test_a_study_with_invalid_runs_ends_with_exit_code_1_and_says_how_many_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("s.yaml").write_text(
        "name: s\nkind: game\nfixed: {game: weakest-link, rounds: 1}\n"
        "grid: {model: [scripted:garbage, scripted:random]}\nreplicates: 1\n"
    )
    assert run_command(["study", "run", "s.yaml"]) == 1
    told = capsys.readouterr()
    assert "1 of 2 ended runs are invalid" in told.err
    assert "1 invalid: scripted:garbage: all of its 10 decisions failed" in told.out
    assert run_command(["study", "status", "s", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["invalid"] == 1
    assert run_command(["report", "s", "--out", "s.html"]) == 0
    page = Path("s.html").read_text()
    assert "Reasons for invalid runs" in page
    assert "Invalid runs: 1" in page
