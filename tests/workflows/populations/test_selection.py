"""Fixation of strategies: what they earn when played, and who takes over, against what can be computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import labmates
from labmates.errors import UsageError
from labmates.stats.fixation import log_fixation, pair_payoffs
from tests.stats.test_fixation import public_goods
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


def test_one_type_alone_is_refused(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"selfish": "return D"})
    with pytest.raises(UsageError, match="there are 1 types"):
        labmates.analyze("fixation", path=folder, game="public-goods")
