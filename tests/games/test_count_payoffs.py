"""Payoffs of a user's own game by the number of cooperators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labmates.games.count_payoffs import read_payoffs, rules_of
from labmates.games.repeated import make_repeated


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
        ("{cooperate: 3, defect: [1, 2]}", "cooperate: a list of finite numbers"),
        ("{matrix: [[1, 2]]}", "two rows of two payoffs"),
        ("{cooperate: [1", "not YAML"),
        ("missing.yaml", "missing.yaml can't be read"),
    ],
)
def test_what_is_not_such_payoffs_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_payoffs(text)
