"""``labmates profile``, as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.models.scripted.base import Draft, Heard
from tests.support.command_line import Labmates
from tests.support.openai_server import OpenAIServer, fault
from tests.support.puppet import puppet

QUICK = ("--game", "o-ring", "--game", "weakest-link", "--group-size", "3")


def test_a_profile_is_taken_reused_and_topped_up(labmates: Labmates) -> None:
    first = labmates("profile", "scripted:random", *QUICK, "--simulations", "2", "--plot", "plots/p.svg")
    assert first.code == 0
    assert "Cooperative profile of scripted:random" in first.out
    assert "4 → " not in first.out.replace("0 → 4", "")
    assert (Path(labmates.folder) / "plots" / "p.svg").read_bytes().startswith(b"<?xml")
    assert "4 of 4" in first.err or first.err.count("completed") == 4
    again = labmates("profile", "scripted:random", *QUICK, "--simulations", "2", "--json", "--out", "profile.csv")
    assert again.err == "Written to profile.csv\n"
    more = labmates("profile", "scripted:random", *QUICK, "--simulations", "3", "--json")
    assert more.err.count("completed") == 2
    [before], [after] = again.records, more.records
    assert [game["simulations"] for game in before["games"]] == [2, 2]
    assert [game["simulations"] for game in after["games"]] == [3, 3]
    assert after["excluded"] is False
    other = labmates("profile", "scripted:random", *QUICK, "--simulations", "2", "--reasoning", "tom", "--json")
    assert other.err.count("completed") == 4, "another condition has its own simulations"
    seeded = labmates("profile", "scripted:random", *QUICK, "--simulations", "2", "--seed", "5")
    assert seeded.code == 2
    assert "with the seed 0; ask for the same one" in seeded.err


def test_its_own_options_come_before_those_of_the_games(labmates: Labmates) -> None:
    own = labmates("profile", "--help").out
    assert own.index("--simulations") < own.index("Condition:") < own.index("--group-size") < own.index("Models:")


def test_a_model_that_fails_too_often_is_marked_as_excluded(labmates: Labmates) -> None:
    def stubborn(heard: Heard) -> Draft:
        return Draft("no" if heard.seed % 2 else '{"effort": 3}')

    asked = ("--game", "weakest-link", "--simulations", "2", "--repair-turns", "0")
    with puppet(stubborn) as model:
        done = labmates("profile", model, *asked)
        scripted = labmates("profile", model, *asked, "--json")
    [told] = scripted.records
    for one in (done, scripted):
        assert one.code == 1, "as an invalid run's"
        assert "in weakest-link is excluded: " in one.err
    assert told["excluded"] is True
    assert 0.2 < told["failed_rate"] < 0.8
    level = told["games"][0]["level"]
    assert (level["value"], level["error"], level["n"], level["low"], level["reason"]) == (
        3,
        0,
        2,
        None,
        "equal values",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("scripted:nobody",), "unknown scripted baseline 'nobody'"),
        (("scripted:random", "--game", "chess"), "unknown game 'chess'"),
        (("scripted:random", "--group-size", "1"), "--group-size: must be at least 2"),
        (("scripted:random", "--plot", "p.gif"), "ends in .png, .svg, .pdf"),
        (("scripted:random", "--simulations", "0"), "--simulations: must be at least 1"),
        ((), "Missing argument 'MODEL...'"),
    ],
)
def test_a_wrong_profile_exits_with_2_and_says_why(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    done = labmates("profile", *arguments)
    assert done.code == 2
    assert said in done.err


def test_simulations_that_fail_are_told_once_and_the_same_command_goes_on(labmates: Labmates) -> None:
    with OpenAIServer(lambda _request, _n: fault(500)) as server:
        at = ("--base-url", server.base_url, "--max-retries", "0")
        done = labmates("profile", "openai:m", *at, *QUICK, "--simulations", "2", OPENAI_API_KEY="sk-secret-0123456789")
    assert done.code == 1
    assert "4 of 4 runs failed; run " in done.err
    assert "the same command resumes the profile" in done.err
    assert "sk-secret" not in done.err + done.out
