"""``labmates run game``, as a user types it."""

from __future__ import annotations

import pytest

from labmates.records.store import Store
from tests.support.command_line import Labmates


def test_a_game_is_run_shown_and_summed_up(labmates: Labmates) -> None:
    ran = labmates(
        "run", "game", "--game", "o-ring", "--model", "scripted:random", "--model-for", "B=scripted:cooperate",
        "--group-size", "3", "--rule", "threshold=40", "--rounds", "2", "--replicates", "2",
    )  # fmt: skip
    assert ran.code == 0
    assert "cooperation" in ran.out
    assert "completeness" not in ran.out
    [one, _] = Store(f"sqlite:///{labmates.folder}/labmates.db").runs()
    assert one.condition["rules"]["threshold"] == 40
    shown = labmates("show", one.id).out
    assert "B/B1, round 2: decide: withdrawal" in shown
    assert "payoffs, round 1: A1 " in shown
    assert "success rate" in shown
    assert "sandbox" not in shown
    [record] = labmates("show", one.id, "--json").records
    assert record["budget"] is None
    assert record["sandbox"] is None
    assert record["metrics"]["failed_decision_rate"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--game", "chess"), "--game: unknown game 'chess'"),
        (("--game", "o-ring", "--rule", "threshold"), "--rule takes NAME=VALUE, not 'threshold'"),
        (("--game", "o-ring", "--rule", "treshold=3"), "--rule: unknown key 'treshold'"),
        (("--game", "o-ring", "--model-for", "C=scripted:random"), "unknown group or player 'C'"),
        (("--game", "o-ring", "--groups", "0"), "--groups: must be at least 1"),
        ((), "missing: --game"),
        (("--game", "o-ring", "--sandbox", "docker"), "No such option '--sandbox'"),
        (("--game", "o-ring", "--judge", "scripted:referee"), "No such option '--judge'"),
    ],
)
def test_a_wrong_game_run_exits_with_2_and_says_why(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    done = labmates("run", "game", "--model", "scripted:random", *arguments)
    assert done.code == 2
    assert said in done.err
