from __future__ import annotations

import pytest

from tests.support.command_line import Labmates


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
