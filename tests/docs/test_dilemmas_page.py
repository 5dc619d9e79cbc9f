"""What the pages on social dilemmas and on adding a mechanism show works."""

from __future__ import annotations

import re
from typing import Any

import pytest

from labmates.games.dilemmas import get_dilemma
from labmates.games.payoff_table import read_table
from labmates.mechanisms.registry import MECHANISMS
from labmates_author.mechanisms import check_mechanism, play_with
from tests.support.plugins import ROOT

PAGE = (ROOT / "docs" / "dilemmas" / "README.md").read_text(encoding="utf-8")
NEW_MECHANISM = (ROOT / "docs" / "howto" / "new-mechanism.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_mechanism_on_the_page_is_as_it_should_be() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    code = next(block for block in blocks("python", NEW_MECHANISM) if "class Rehearsal" in block)
    exec(compile(code, "page", "exec"), names)
    mechanism = names["Rehearsal"]()
    games = {name: get_dilemma(name).game() for name in ("prisoners", "public-goods")}
    assert check_mechanism(mechanism, games) == []

    def hardens(question: Any) -> dict[str, int]:
        return (
            {"A0": 100, "A1": 0} if question.step.startswith("0/") or "/0/" in question.step else {"A0": 0, "A1": 100}
        )

    result, _, asked = play_with(mechanism, games["prisoners"], hardens)
    assert result.payoffs == (1.0, 1.0)
    assert asked[-1].told == ("## The rehearsal before\nA0, A0",)


def test_the_ratings_on_the_page_are_what_it_says() -> None:
    names: dict[str, Any] = {}
    code = next(block for block in blocks("python") if "deviation_ratings(payoffs)" in block)
    exec(code, names)
    assert names["deviation_ratings"](names["payoffs"]).tolist() == pytest.approx([-1.0, 0.0])


def test_the_payoff_table_on_the_page_is_a_game() -> None:
    [table] = blocks("yaml")
    assert read_table(table, "page").game().table[1, 0].tolist() == [4, 2]


def test_the_page_names_every_mechanism_and_every_term() -> None:
    for name in MECHANISMS.names():
        assert f"`{name}`" in PAGE
