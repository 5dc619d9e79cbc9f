"""Answers in a sentence: the highest rows of a table, ties as ties, and no order that the intervals don't tell."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.stats.answers import highest
from labmates.stats.intervals import mean
from labmates.stats.tables import Column, Table

COLUMNS = [Column("game"), Column("model"), Column("skill", form=".2f", shows="both")]


def row(model: str, value: float, *ends: float, game: str = "g") -> dict[str, Any]:
    return {"game": game, "model": model, "skill": value, **dict(zip(("skill_low", "skill_high"), ends, strict=False))}


def answer(*rows: dict[str, Any], within: tuple[str, ...] = ()) -> list[str]:
    return highest(Table("t", "T", COLUMNS, rows), "skill", ["model"], within)


LOW = row("low", 0.2, 0.1, 0.3)
EQUAL = row("equal", 0) | mean([0.5, 0.5, 0.5]).row("skill")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([LOW, row("high", 0.9, 0.8, 1.0)], "Highest skill: high, 0.90 [0.80, 1.00]; lowest: low, 0.20 [0.10, 0.30]."),
        ([LOW, row("wide", 0.9, 0.2, 1.0)], "Can't tell wide from low in skill: 0.90 [0.20, 1.00], 0.20 [0.10, 0.30]."),
        ([LOW, row("once", 0.9)], "Can't tell once from low in skill: 0.90, 0.20 [0.10, 0.30]."),
        ([row("a", 0.9), row("b", 0.2)], "Highest skill: a, 0.90; lowest: b, 0.20."),
        ([row("a", 0.9001), row("b", 0.9), row("c", 0.2)], "Highest skill: a and b, 0.90; lowest: c, 0.20."),
        ([row("a", 0.9), row("b", 0.9)], "a and b: skill 0.90 each."),
        ([LOW], "low: skill 0.20 [0.10, 0.30]."),
        ([EQUAL, row("wide", 0.2, 0.1, 0.6)], "Can't tell equal from wide in skill: 0.50 [=], 0.20 [0.10, 0.60]."),
    ],
)  # fmt: skip
def test_the_highest_rows_are_told_as_far_as_intervals_tell(rows: list[dict[str, Any]], sentence: str) -> None:
    assert answer(*rows) == [sentence]


def test_each_part_of_a_table_has_its_answer_and_many_are_counted() -> None:
    each = [row(model, value, game=f"g{game}") for game in range(5) for model, value in (("a", game), ("b", 1.5))]
    assert answer(*each[:4], within=("game",)) == [
        "In g0: Highest skill: b, 1.50; lowest: a, 0.00.",
        "In g1: Highest skill: b, 1.50; lowest: a, 1.00.",
    ]
    assert answer(*each, within=("game",)) == ["Highest skill: a in g2, g3 and g4; b in g0 and g1."]
    same = [row(model, value, game=f"g{game}") for game in range(5) for model, value in (("a", 1), ("b", 0))]
    assert answer(*same, within=("game",)) == ["Highest skill: a, in each game."]


def test_a_part_with_one_row_alone_is_no_choice() -> None:
    alone = [row("a", 0.9, game=game) for game in "ghij"]
    assert answer(*alone, within=("game",)) == []
    both = [*alone, *(row("b", 0.2, game=game) for game in "ghi")]
    assert answer(*both, within=("game",)) == ["Highest skill: a in g, h and i."]


def test_a_row_without_a_value_that_names_others_is_named_by_its_lack() -> None:
    columns = [Column("game"), Column("model_for"), Column("skill", form=".1f")]
    rows = [{"game": "g", "model_for": who, "skill": skill} for who, skill in (("B=x", 0.9), ("", 0.2))]
    named = highest(Table("t", "T", columns, rows), "skill", ["game", "model_for"])
    assert named == ["Highest skill: B=x, 0.9; lowest: no model for, 0.2."]


def test_values_that_are_missing_have_no_answer() -> None:
    assert answer(LOW | {"skill": None}) == []
