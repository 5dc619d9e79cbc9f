from __future__ import annotations

import pytest

from tests.support.command_line import Labmates


def test_games_are_listed_shown_and_checked(labmates: Labmates) -> None:
    listed = labmates("games").out
    assert len(listed.splitlines()) == 6
    assert "o-ring" in listed
    shown = labmates("games", "show", "o-ring", "--group-size", "3", "--group-size", "5").out
    assert "decides: withdrawal: a whole number from 0 to 10" in shown
    assert "rule threshold = 50" in shown
    assert "n = 5" in shown
    assert "29.333" in shown
    pools = labmates("games", "show", "public-goods").out
    assert "   0     10       0  20.00" in pools, "the optimum"
    assert "  10      0       0  10.00" in pools, "the equilibrium"
    risk = labmates("games", "show", "collective-risk").out
    assert "contribution in all rounds together  n = 5" in risk
    assert "Nash contribution per round" in risk
    assert "People reach the target in 50 to 60 % of groups where the risk is high (Milinski" in risk
    assert labmates("games", "check", "public-goods").out == "public-goods: no problems.\n"


def test_a_shown_game_is_told_as_json(labmates: Labmates) -> None:
    [found] = labmates("games", "show", "common-pool", "--rule", "pool=60", "--group-size", "3", "--json").records
    assert found["rules"]["pool"] == 60
    assert [one["metric"] for one in found["people"]] == [""]
    assert found["optimum"] == {"level": 0.0, "payoff": 30.0}
    assert [one["name"] for one in labmates("games", "--json").records] == sorted(
        ["weakest-link", "common-pool", "common-pool-sanctions", "collective-risk", "o-ring", "public-goods"]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "chicken"), "unknown game 'chicken'"),
        (("show", "o-ring", "--rule", "pool"), "--rule takes NAME=VALUE, not 'pool'"),
        (("show", "o-ring", "--rule", "pool=3"), "pool"),
        (("show", "o-ring", "--group-size", "0"), "group_size"),
        (("check", "o-ring", "--rule", "threshold=much"), "threshold"),
        (("show", "public-goods", "--rule", "group_multiplier=1/0"), "group_multiplier: must be a number"),
    ],
)
def test_wrong_input_exits_with_2(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    done = labmates("games", *arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""
