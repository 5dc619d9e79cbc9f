"""Fixation of strategies: what they earn when played, and who takes over, against what can be computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import labmates
from labmates.errors import UsageError
from labmates_populations.condition import EvolutionCondition
from labmates_populations.fixation import log_fixation
from tests.support.metagames import pair_payoffs, public_goods
from tests.support.strategies import library

PLAIN = {"collective": "return C", "exploitative": "return D"}


def test_genes_that_do_always_the_same_have_the_payoffs_of_the_game(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one=PLAIN)
    result = labmates.analyze(
        "fixation", path=folder, game="public-goods", samples=3, rounds=2, population=20, strength=2.0
    )
    types = result.table("types").rows
    expected = np.exp(log_fixation((pair_payoffs(public_goods(4, 2.0)) - 0.5) / 2, 20, 2.0))  # from k/n to 1 + k - k/n
    fixation = {(row["resident"], row["mutant"]): row["fixation"] for row in result.table("fixation").rows}
    assert fixation["one/collective", "one/exploitative"] == pytest.approx(expected[0, 1])
    assert fixation["one/exploitative", "one/collective"] == pytest.approx(expected[1, 0])
    assert [row["alpha_rank"] for row in types] == pytest.approx([0, 1])
    assert [row["tied"] for row in types] == ["", ""]
    assert result.verdict[0].startswith("Highest share of time: one/exploitative, ")
    assert [row["strategies"] for row in types] == [8, 8]
    # Nobody gains by deviating from defection; from the strictest equilibrium, a cooperator loses 1 - k/n.
    assert [row["deviation_rating"] for row in types] == pytest.approx([-0.5, 0])
    share = types[1]
    assert share["share_low"] == share["share"] == share["share_high"]  # nothing is random here
    payoffs = {(row["type"], row["players"]): row["payoff"] for row in result.table("payoffs").rows}
    assert payoffs["one/collective", 4] == 2
    assert payoffs["one/collective", 1] == 0.5
    assert payoffs["one/exploitative", 1] == 2.5
    assert (result.figures[0].picture() or pytest.fail("no picture")).svg.startswith("<?xml")


def test_each_strategy_and_references_can_be_types_of_their_own(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"selfish": "return C if random.random() < 0.5 else D"})
    result = labmates.analyze(
        "fixation",
        path=folder,
        game="public-goods",
        by="strategy",
        references=("cc-3", "defect"),
        samples=2,
        rounds=2,
        group_size=3,
    )
    types = {row["type"]: row for row in result.table("types").rows}
    assert len(types) == 10
    assert types["reference:defect"]["payoff"] == 1
    assert types["reference:defect"]["deviation_rating"] is not None
    assert sum(row["share"] for row in types.values()) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_clones_are_tied_at_every_seed(tmp_path: Path, seed: int) -> None:
    folder = library(tmp_path, "public-goods", one={"selfish": "return C if random.random() < 0.5 else D"})
    values: dict[str, Any] = {"by": "strategy", "samples": 5, "rounds": 2, "group_size": 3, "strength": 10.0}
    result = labmates.analyze("fixation", path=folder, game="public-goods", seed=seed, **values)
    types = result.table("types").rows
    assert result.verdict == ["Can't tell the types apart: their payoffs may differ by chance (p > 0.001)."]
    assert [row["alpha_rank"] for row in types] == pytest.approx([1 / 8] * 8)
    assert all(len(row["tied"].split(", ")) == 7 for row in types)


def test_one_type_alone_is_refused(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"selfish": "return D"})
    with pytest.raises(UsageError, match="there are 1 types"):
        labmates.analyze("fixation", path=folder, game="public-goods")


STAG = """
    table = self.game_description
    return C if table.cooperate[-1] > table.defect[0] and table.n_players == len(table.defect) else D
"""


def test_own_payoffs_from_a_file_are_played_and_strategies_see_them(tmp_path: Path) -> None:
    payoffs = tmp_path / "stag.yaml"
    payoffs.write_text("cooperate: [0, 0, 4]\ndefect: [1, 1, 1]\n")
    folder = library(tmp_path, "by-count-stag", one={"collective": STAG, "exploitative": "return D"})
    values: dict[str, Any] = {"game": "by-count", "payoffs": str(payoffs), "group_size": 3, "rounds": 2}
    hunters, others = labmates.analyze("fixation", path=folder, samples=2, **values).table("types").rows
    assert (hunters["payoff"], others["payoff"]) == (4, 1)
    values |= {"strategies": str(folder), "population": 12, "elite": 4}
    made = EvolutionCondition.model_validate(values)
    assert json.loads(made.payoffs or "") == {"cooperate": [0, 0, 4], "defect": [1, 1, 1]}
    assert EvolutionCondition.model_validate(made.model_dump()).key == made.key
    for wrong, problem in (
        ({"group_size": 4}, "n_players must be 3"),
        ({"payoffs": None}, "--payoffs FILE"),
        ({"game": "public-goods"}, "--payoffs FILE"),
    ):
        with pytest.raises(ValidationError, match=problem):
            EvolutionCondition.model_validate(values | wrong)


def test_players_random_numbers_in_groups_of_types_derive_from_the_files(tmp_path: Path) -> None:
    chance = dict.fromkeys(("collective", "exploitative"), "return C if random.random() < 0.5 else D")
    file = library(tmp_path, "public-goods", one=chance) / "public-goods" / "one.py"
    played = []
    for more in ("", "# another file\n"):
        file.write_text(file.read_text() + more)
        shown = labmates.analyze("fixation", path=tmp_path, game="public-goods", samples=4, rounds=8)
        played.append(shown.table("payoffs").rows)
    assert played[0] != played[1]
