"""Fingerprints: strategies whose automaton is known, namesakes, and the library axelrod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labmates
from labmates.errors import UsageError
from labmates.games.iterated.library import library as axelrod_library
from labmates.games.iterated.match import Payoffs
from labmates.games.repeated import make_repeated
from labmates.workflows.populations.engine.automaton import Automaton, find_automaton, library_moves
from labmates.workflows.populations.engine.behaviour import behaviours
from labmates.workflows.populations.engine.workers import Workers
from tests.support.strategies import strategy, write

GRIM = Automaton((True, False), ((1, 1, 0), (1, 1, 1)))
PAYOFFS = Payoffs(5, 3, 1, 0)


def test_strategies_have_the_automaton_namesake_and_rates_that_they_were_made_with(tmp_path: Path) -> None:
    bodies = [
        "return C if history.round_number == 0 or history.opponent_cooperators[-1] >= 2 else D",
        "return D if history.round_number == self.game_description.n_rounds - 1 else C",
        "return C if history.round_number in (0, 2) else D",
        "return C if random.random() < 0.5 else D",
    ]
    classes = [strategy(body, name=f"Strategy_SELFISH_{number}") for number, body in enumerate(bodies, 1)]
    write(tmp_path / "public-goods", *classes)
    result = labmates.analyze(
        "fingerprint", path=tmp_path, game="public-goods", group_size=3, k=2, rounds=4, rollouts=200
    )
    like_cc_2, until_last, counting, dice = result.table("fingerprint").rows
    assert (like_cc_2["nearest"], like_cc_2["agreement"], like_cc_2["states"]) == ("cc-2", 1, 2)
    assert like_cc_2["automaton"] == "0: C → 1 1 0; 1: D → 1 1 0"
    assert [like_cc_2[name] for name in ("first", "after_0", "after_1", "after_2")] == [1, 0, 0, 1]
    assert (until_last["nearest"], until_last["states"], until_last["last"]) == ("last-defect", 1, "D")
    assert (counting["nearest"], counting["states"]) == ("alternate", 2)
    assert (dice["nearest"], dice["deterministic"], dice["automaton"]) == ("random-0.5", False, None)
    assert dice["after_1"] == pytest.approx(0.5, abs=0.1)
    assert result.figures[0].picture() is not None


def test_an_automaton_is_found_from_its_moves_and_code_made_of_it_plays_them() -> None:
    game = make_repeated("public-goods", 3, 5)
    moves = GRIM.moves(5)
    assert find_automaton(moves, 3, 5) == GRIM
    with Workers(processes=1) as workers:
        [made] = workers.load("made", GRIM.source("Strategy_SELFISH_1"))
        [played] = behaviours(
            game, workers.play, [made.index], features="counts", random={made.index: False}, cooperate=frozenset()
        )
    assert played.deterministic
    assert np.array_equal(played.rates == 1, moves)


def test_a_strategy_that_counts_rounds_has_no_automaton() -> None:
    moves = np.array([True, True, True, False, False, False, False])
    assert find_automaton(moves, 2, 3) is None


def test_a_player_for_the_library_needs_a_game_of_two() -> None:
    with pytest.raises(UsageError, match="two players"):
        GRIM.axelrod_player()


@pytest.mark.needs("axelrod")
@pytest.mark.xdist_group("axelrod")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["TitForTat", "Grudger", "WinStayLoseShift", "TitFor2Tats", "Prober", "Alternator"])
def test_strategies_of_the_library_as_automata_play_its_matches(name: str) -> None:
    axl: Any = axelrod_library()
    automaton = find_automaton(library_moves(name, 7, PAYOFFS), 2, 7)
    assert automaton is not None
    for opponent in (axl.Cooperator, axl.CyclerCCD, axl.EvolvedFSM16, axl.TitForTat, axl.Prober):
        original = axl.Match((getattr(axl, name)(), opponent()), turns=30).play()
        assert axl.Match((automaton.axelrod_player(), opponent()), turns=30).play() == original


@pytest.mark.needs("axelrod")
@pytest.mark.xdist_group("axelrod")
@pytest.mark.timeout(600)
def test_a_strategy_of_two_is_recognised_among_those_of_the_library(tmp_path: Path) -> None:
    body = "return C if history.round_number < 2 or history.opponent_cooperators[-2:].any() else D"
    write(tmp_path / "public-goods", strategy(body))
    values: dict[str, Any] = {"path": tmp_path, "game": "public-goods", "namesakes": "axelrod", "k": 1.5}
    [row] = labmates.analyze("fingerprint", **values, group_size=2).table().rows
    assert (row["nearest"], row["agreement"], row["states"]) == ("axelrod/TitFor2Tats", 1, 3)
    with pytest.raises(UsageError, match="two-player games"):
        labmates.analyze("fingerprint", **values, group_size=4)
