"""What is repeated or misplaced on a command line is refused, with what to write."""

from __future__ import annotations

import pytest

from tests.support.command_line import Labmates


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run game public-goods --model scripted:random", "write: labmates run game --game public-goods"),
        ("run science ecology", "write: labmates run science --task ecology"),
        ("report --study a --out r.html", "--study is no option here; write: labmates report [STUDY]"),
        ("compare --study a --study b", "labmates compare study=FIRST study=SECOND"),
        ("run game --game o-ring --model scripted:random x", "unexpected extra argument (x)"),
    ],
)
def test_a_misplaced_value_is_told_its_place(labmates: Labmates, arguments: str, says: str) -> None:
    done = labmates(*arguments.split())
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("run", "game", "--game", "o-ring", "--model", "a:b", "--model", "c:d"), "--model"),
        (("study", "status", "--store", "sqlite:///a.db", "--store", "sqlite:///b.db"), "--store"),
        (("strategies", "play", "--players", "a", "b", "--game", "public-goods", "--game", "common-pool"), "--game"),
    ],
)
def test_an_option_with_one_value_is_refused_when_it_is_given_twice(
    labmates: Labmates, arguments: tuple[str, ...], option: str
) -> None:
    done = labmates(*arguments)
    assert (done.code, done.out) == (2, "")
    assert f"{option} is given 2 times; it takes one value" in done.err


def test_options_that_take_several_values_are_repeated_as_before(labmates: Labmates) -> None:
    done = labmates(
        "run",
        "science",
        "--model",
        "scripted:hasty",
        "--judge",
        "scripted:referee",
        "--judge",
        "scripted:gullible",
        "--task",
        "nope",
    )
    assert "unknown task 'nope'" in done.err
