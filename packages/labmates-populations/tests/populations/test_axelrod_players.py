"""All of this needs the library itself, whose import takes seconds: it is done in one process, once."""

from __future__ import annotations

import asyncio
import sys
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun
from labmates.errors import MissingExtraError, UsageError
from labmates.games.iterated.match import Action, Payoffs, Round, turned
from labmates.games.iterated.strategies import STRATEGIES, generosity
from labmates.records.run import RunRecord
from labmates_populations.axelrod_players import check_playable, library, library_action, library_names

pytestmark = [pytest.mark.needs("axelrod"), pytest.mark.xdist_group("axelrod"), pytest.mark.timeout(600)]

PAYOFFS = Payoffs()
TURNS = 12


@cache
def playable() -> list[str]:
    """Return the strategies that the library itself can play with these payoffs."""
    names = []
    for name in library_names():
        try:
            check_playable(name, PAYOFFS)
        except UsageError:
            continue
        names.append(name)
    return names


def is_stochastic(name: str) -> bool:
    return bool(library().Classifiers["stochastic"](getattr(library(), name)()))


def seed_of_first(seed: int) -> int:
    """Return the seed that a match of the library with this seed gives to the first player that throws dice."""
    return int(library().Match((library().Random(), library().Random()), seed=seed)._random.random_seed_int())


def theirs(
    one: str, other: str, seed: int = 1, turns: int = TURNS, payoffs: Payoffs = PAYOFFS, **parameters: float
) -> list[Round]:
    """Return the library's own match; `parameters` are those of the first player."""
    axl = library()
    game = axl.Game(r=payoffs.reward, s=payoffs.sucker, t=payoffs.temptation, p=payoffs.punishment)
    match = axl.Match((getattr(axl, one)(**parameters), getattr(axl, other)()), turns=turns, game=game, seed=seed)
    return [(str(first), str(second)) for first, second in match.play()]  # type: ignore[misc]


def ours(one: str, other: str, seed: int = 0, turns: int = TURNS) -> list[Round]:
    rounds: list[Round] = []
    for _ in range(turns):
        first = library_action(one, rounds, payoffs=PAYOFFS, length=turns, seed=seed)
        rounds.append((first, library_action(other, turned(rounds), payoffs=PAYOFFS, length=turns, seed=seed)))
    return rounds


def test_the_library_has_its_240_strategies() -> None:
    assert len(library_names()) == 240
    assert len(playable()) >= 220


@pytest.mark.slow("packages/labmates-populations/tests/populations/test_axelrod_players.py")
def test_all_pairs_of_forty_strategies_move_as_in_the_librarys_own_match() -> None:
    costly = library().Classifiers["long_run_time"]
    names = [n for n in playable() if not is_stochastic(n) and not costly(getattr(library(), n)())]
    chosen = names[:: len(names) // 40][:40]
    assert len(chosen) >= 30
    for one, other in combinations_with_replacement(chosen, 2):
        assert ours(one, other) == theirs(one, other), (one, other)


def test_each_strategy_moves_as_in_the_librarys_own_match_dice_included() -> None:
    costly = library().Classifiers["long_run_time"]
    seed = seed_of_first(1)
    for name in playable():
        if not costly(getattr(library(), name)()):
            assert ours(name, "TitForTat", seed) == theirs(name, "TitForTat"), name


def test_a_match_taken_up_in_the_middle_goes_on_as_it_would_have() -> None:
    for name in ("Adaptive", "BackStabber", "Stalker", "EvolvedFSM16"):
        whole = ours(name, "Alternator")
        for number, (own, _) in enumerate(whole):
            # Another length than before: nothing is kept of it.
            assert library_action(name, whole[:number], payoffs=PAYOFFS, length=TURNS, seed=99 + number) == own or (
                is_stochastic(name)
            )


def test_a_strategy_that_throws_dice_agrees_with_what_it_did_whatever_the_seeds_were() -> None:
    # It chooses a face in the first round and keeps to it.
    for seed in range(30):
        face = library_action("ALLCorALLD", [], seed=seed)
        rounds: list[Round] = [(face, "C")] * 5
        assert library_action("ALLCorALLD", rounds, seed=1000 + seed) == face


def test_a_strategy_knows_the_length_of_the_match() -> None:
    nice: list[Round] = [("C", "C")] * 8
    assert library_action("BackStabber", nice, length=20) == "C"
    assert library_action("BackStabber", nice, length=9) == "D"


NAMESAKES = {
    "cooperate": "Cooperator",
    "defect": "Defector",
    "random": "Random",
    "tit-for-tat": "TitForTat",
    "suspicious-tit-for-tat": "SuspiciousTitForTat",
    "tit-for-two-tats": "TitFor2Tats",
    "generous-tit-for-tat": "GTFT",
    "grim": "Grudger",
    "win-stay-lose-shift": "WinStayLoseShift",
    "alternator": "Alternator",
    "joss": "FirstByJoss",
    "extort-2": "ZDExtort2",
}


@pytest.mark.parametrize("payoffs", [PAYOFFS, Payoffs(5, 3, 1, 0)], ids=["papers", "librarys"])
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_our_own_strategies_move_as_their_namesakes(name: str, payoffs: Payoffs) -> None:
    # The library computes this one's generosity for its own payoffs, whatever those of the match are.
    parameters = {"p": generosity(payoffs)} if name == "generous-tit-for-tat" and payoffs == PAYOFFS else {}
    for opponent in ("Alternator", "TitForTat", "Random", "Defector", "Cooperator", "WinStayLoseShift", "Grudger"):
        for seed in range(4):
            dice = library().random_.RandomGenerator(seed=seed_of_first(seed))
            match = theirs(NAMESAKES[name], opponent, seed, turns=20, payoffs=payoffs, **parameters)
            for number, (own, _) in enumerate(match):
                chance = STRATEGIES[name](match[:number], payoffs)
                expected: Action = str(dice.random_choice(chance))  # type: ignore[assignment]
                assert own == expected, (opponent, seed, number)


def test_a_name_that_the_library_lacks_is_told_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'Grudger'"):
        library_action("Grudge", [])


def test_a_strategy_that_breaks_the_librarys_rules_is_not_offered() -> None:
    with pytest.raises(UsageError, match="unknown axelrod strategy"):
        library_action("Darwin", [])


def test_payoffs_with_which_the_library_itself_fails_are_refused() -> None:
    with pytest.raises(UsageError, match="ZDExtort4 can't play with these payoffs"):
        check_playable("ZDExtort4", PAYOFFS)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    library.cache_clear()
    monkeypatch.setitem(sys.modules, "axelrod", None)
    try:
        with pytest.raises(MissingExtraError, match=r"labmates\[axelrod\]"):
            library_action("TitForTat", [])
    finally:
        library.cache_clear()


def test_as_models_they_play_prisoners_dilemmas(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    def play(**condition: Any) -> RunRecord:
        [run] = asyncio.run(arun("dilemma", store=url, **condition))
        assert run.status == "completed", run.error
        return run

    terms = {"rounds": 6, "memory": 6}
    runs = [
        play(game="prisoners", mechanism="repetition", terms=terms, entrants=[model, "scripted:defect"])
        for model in ("scripted:axelrod/TitForTat", "scripted:tit-for-tat")
    ]
    assert runs[0].metrics == runs[1].metrics
    assert runs[0].metrics["failed_decision_rate"] == 0
    for mechanism in ("none", "reputation"):
        run = play(game="prisoners", mechanism=mechanism, entrants=["scripted:axelrod/Grudger"])
        assert run.metrics["normalised"] == pytest.approx(1)
    for other in ({"game": "trust"}, {"game": "prisoners", "mechanism": "contract"}):
        with pytest.raises(UsageError, match="plays prisoner's dilemmas under none, repetition or reputation"):
            play(entrants=["scripted:axelrod/Grudger"], **other)
