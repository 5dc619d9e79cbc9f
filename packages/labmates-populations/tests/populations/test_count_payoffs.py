"""Payoffs of a user's own game by the number of cooperators."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.registry import PluginError, Registry
from labmates_populations import count_payoffs
from labmates_populations.count_payoffs import players_of, read_payoffs, rules_of
from labmates_populations.repeated import make_repeated
from tests.support.plugins import install


def test_a_file_becomes_the_rules_of_the_game_and_its_text_reads_as_itself(tmp_path: Path) -> None:
    file = tmp_path / "stag.yaml"
    file.write_text("cooperate: [0, 2, 4]\ndefect: [1, 1, 1]\n")
    text = read_payoffs(str(file))
    assert json.loads(text) == {"cooperate": [0, 2, 4], "defect": [1, 1, 1]}
    assert read_payoffs(text) == text
    assert make_repeated("by-count", 3, 5, rules_of(text)).bounds() == (2 / 3, 4)


def test_a_matrix_is_of_two_players_with_cooperation_first() -> None:
    assert rules_of(read_payoffs("{matrix: [[3, 0], [5, 1]]}")) == {"cooperate": [0, 3], "defect": [1, 5]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{a: 1}", "two lists by the number of cooperators, or a matrix"),
        ("{cooperate: [1, 2], defect: [1]}", "as many payoffs as there are players"),
        ("{cooperate: [1, .nan], defect: [1, 2]}", "cooperate: a list of finite numbers"),
        (f"{{matrix: [[{10**400}, 1], [2, 3]]}}", "cooperate: a list of finite numbers"),
        ("{cooperate: 3, defect: [1, 2]}", "cooperate: a list of finite numbers"),
        ("{matrix: [[1, 2]]}", "two rows of two payoffs"),
        ("{cooperate: [1", "not YAML"),
        ("{actions: [a], matrix: [[1]]}", "2 to 32 different names"),
        ("{actions: [a, 1], matrix: [[1, 2], [3, 4]]}", "a list of names"),
        ("{actions: [a, b], matrix: [[1, 2]]}", "matrix: 2 lists of payoffs"),
        ("{actions: [a, b], matrix: [[1, 2], [3]]}", "2 rows of 2 payoffs"),
        ("{actions: [a, b], matrix: [[1, 2], [3, x]]}", "matrix: finite numbers"),
        ("{actions: [a, b]}", "needs 'actions' and a 'matrix' or 'counts'"),
        ("{actions: [a, b], counts: {1 0: [1, 2]}}", "a key for each way"),
        ("{actions: [a, b], counts: {1 0: [1, 2], 0 1: [1]}}", "2 payoffs for each key"),
        ("missing.yaml", "missing.yaml can't be read"),
    ],
)
def test_what_is_not_such_payoffs_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_payoffs(text)


def test_named_actions_have_a_matrix_or_payoffs_by_counts_of_the_others() -> None:
    matrix = read_payoffs("{actions: [rock, paper, scissors], matrix: [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]}")
    game = make_repeated("by-action", 2, 5, rules_of(matrix))
    assert (read_payoffs(matrix), players_of(matrix)) == (matrix, 2)
    assert game.payoffs(np.array([[0, 1], [2, 1], [2, 2]], np.uint8), None).tolist() == [[-1, 1], [1, -1], [0, 0]]
    counts = read_payoffs('{actions: [hunt, gather], counts: {"0 2": [0, 1], "2 0": [4, 1], "1 1": [0, 1]}}')
    assert players_of(counts) == 3
    assert make_repeated("by-action", 3, 5, rules_of(counts)).bounds() == (1 / 3 * 1, 4)


PLUGIN = """
import numpy as np
from pathlib import Path

ROCK = {"actions": ("rock", "paper", "scissors"), "matrix": np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])}
FILE = Path(__file__).with_name("stag.yaml")
BROKEN = {"matrix": [[1]]}


def volunteers(players):
    counts = {f"{others} {players - 1 - others}": [2, 3 if others else 0] for others in range(players)}
    return {"actions": ["volunteer", "wait"], "counts": counts}


def failing(players):
    return 1 / 0


def objects(players):
    return object()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = {name: f"own_payoffs:{name}" for name in ("ROCK", "FILE", "BROKEN", "volunteers", "failing", "objects")}
    points = {"labmates.payoffs": {name.lower(): place for name, place in names.items()}}
    monkeypatch.syspath_prepend(install(tmp_path, "own-payoffs", points, {"own_payoffs": PLUGIN}))
    monkeypatch.setattr(count_payoffs, "PAYOFFS", Registry("payoffs", "labmates.payoffs"))
    (tmp_path / "stag.yaml").write_text("cooperate: [0, 2, 4]\ndefect: [1, 1, 1]\n")
    return tmp_path


@pytest.mark.usefixtures("package")
def test_a_package_adds_payoffs_as_content_file_or_function_of_the_number_of_players() -> None:
    rock = read_payoffs("rock")
    assert rock == read_payoffs("{actions: [rock, paper, scissors], matrix: [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]}")
    assert rules_of(read_payoffs("file")) == {"cooperate": [0, 2, 4], "defect": [1, 1, 1]}
    game = make_repeated("by-action", 5, 3, rules_of(read_payoffs("volunteers:5")))
    assert game.payoffs(np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], np.uint8), None).tolist() == [
        [2, 3, 3, 3, 3],
        [0] * 5,
    ]
    assert game.bounds() == (0, (2 + 4 * 3) / 5)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("rock:2", r"'rock' takes no number of players \(rock\)"),
        ("volunteers", r"'volunteers' needs a number of players \(volunteers:4\)"),
        ("volunteers:1", "'1' is not a number of players from 2 to 4096"),
        ("volunteers:many", "'many' is not a number of players"),
        ("volunteers:" + "9" * 50, "is not a number of players"),
        ("broken", r"'broken' \(own-payoffs 1.0, .*\) can't be used: .*matrix: two rows of two payoffs"),
        ("failing:3", "can't be used: ZeroDivisionError"),
        ("objects:3", "payoffs are numbers, lists and mappings, not <object"),
        ("rok", "rok can't be read: No such file or directory; payoffs by name: broken, failing, file, objects, rock"),
    ],
)
def test_unusable_payoffs_of_a_package_are_refused(value: str, problem: str) -> None:
    with pytest.raises((UsageError, PluginError, ValueError), match=problem):
        read_payoffs(value)
