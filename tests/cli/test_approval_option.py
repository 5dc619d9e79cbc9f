from __future__ import annotations

import os
import pty

import pytest
import yaml

from tests.support.approving import LAB
from tests.support.command_line import Labmates
from tests.support.interrupting import CODE

COMMAND = ("run", "science", "--task", "anomaly", "--difficulty", "easy", "--model", "scripted:silent")


@pytest.fixture
def organisation(labmates: Labmates) -> str:
    """The file of an organisation whose plans a person approves."""
    alone = {key: value for key, value in LAB.items() if key not in ("approve", "flow", "teams")}
    lab = {**alone, "approve": ["plan"], "flow": ["authors"], "teams": {"authors": LAB["teams"]["authors"]}}
    (labmates.folder / "careful.yaml").write_text(yaml.safe_dump(lab, sort_keys=False))
    return "careful.yaml"


def test_where_nobody_can_be_asked_the_command_says_so_before_it_starts(labmates: Labmates, organisation: str) -> None:
    refused = labmates(*COMMAND, "--organisation", organisation)
    assert (refused.code, refused.out) == (2, "")
    assert "this organisation requires a person's approval of each plan, but nobody can be asked" in refused.err
    assert "--approve-all" in refused.err
    assert not labmates("runs", "--json").records
    done = labmates(*COMMAND, "--organisation", organisation, "--approve-all", "--json")
    [run] = done.records
    told = labmates("show", run["id"], "--events").out
    assert "plan approved (automatically)" in told
    assert labmates("replay", run["id"]).code == 0


def test_who_approves_is_chosen_once(labmates: Labmates, organisation: str) -> None:
    lab = (*COMMAND, "--organisation", organisation)
    refused = labmates(*lab, "--approve-all", "--approve-in-viewer")
    assert (refused.code, refused.out) == (2, "")
    assert "--approve-all and --approve-in-viewer exclude each other; choose one" in refused.err
    assert not labmates("runs", "--json").records


def test_a_fork_has_the_choice_of_its_own_command(labmates: Labmates, organisation: str) -> None:
    [run] = labmates(*COMMAND, "--organisation", organisation, "--approve-all", "--json").records
    fork = ("fork", run["id"], "--at", "1", "--set", "budget=2", "--json")
    unasked = labmates(*fork, "--approve-in-viewer", "--approval-timeout", "0.01").records[0]
    told = labmates("show", unasked["id"], "--events").out
    assert "plan refused: nobody answered within 0.01 s (automatically)" in told
    approved = labmates(*fork).records[0]
    assert "plan approved (automatically)" in labmates("show", approved["id"], "--events").out


def test_a_user_answers_in_the_terminal(labmates: Labmates, organisation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"perhaps\nno, look first\nyes\nyes\nyes\n")
    with os.fdopen(terminal) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        several = labmates(*COMMAND, "--organisation", organisation, "--replicates", "2")
        done = labmates(*COMMAND, "--organisation", organisation, "--json")
    os.close(keyboard)
    assert (several.code, "--replicates 1" in several.err) == (2, True)
    [run] = done.records
    told = labmates("show", run["id"], "--events").out
    assert "plan refused: look first" in told
    assert "plan approved\n" in told
    assert done.err.count("ben (authors) plans for the team authors:") == 2
    assert done.err.count("Approve? Answer yes, or no and the reason") == 3


def test_an_interrupt_where_nobody_can_be_asked_fails_and_the_run_is_resumed_with_answers(labmates: Labmates) -> None:
    (labmates.folder / "asking.py").write_text(CODE)
    failed = labmates(*COMMAND, "--organisation", "asking.py:short", "--json")
    assert failed.code == 1
    assert "graph (lab) asks a person at its code, but nobody can be asked here" in failed.err
    assert "--approve-in-viewer" in failed.err
    [run] = failed.records
    assert (run["status"], run["usage"]["llm_calls"]) == ("failed", 1)
    done = labmates("run", "science", "--resume", run["id"], "--approve-all", "--json")
    [run] = done.records
    assert (done.code, run["status"], run["usage"]["llm_calls"]) == (0, "completed", 1)
    told = labmates("show", run["id"], "--events").out
    assert "interrupt approved (automatically)" in told
    assert labmates("replay", run["id"]).code == 0


def test_a_user_answers_an_interrupt_in_the_terminal(labmates: Labmates, monkeypatch: pytest.MonkeyPatch) -> None:
    (labmates.folder / "asking.py").write_text(CODE)
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b'\n{"n": 17}\n')
    with os.fdopen(terminal) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        done = labmates(*COMMAND, "--organisation", "asking.py:short", "--json")
    os.close(keyboard)
    assert "graph (lab) asks at its code:\n\nWhat is the answer?\n" in done.err
    assert done.err.count("Answer yes, no, any text, or JSON") == 2
    [run] = done.records
    shown = labmates("show", run["id"]).out
    assert 'interrupt answered: {"n": 17}' in shown
    assert "What is the answer?" in shown
    assert "{'n': 17}" in shown
