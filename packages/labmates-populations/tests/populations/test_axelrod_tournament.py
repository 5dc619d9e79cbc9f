"""Strategies of the library axelrod in a tournament; its import takes seconds and is done once, in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.models.names import is_own_baseline, parse_model
from labmates.models.scripted import describe
from labmates.workflows.tournament.condition import TournamentCondition
from labmates_populations.axelrod_players import library
from tests.support.tournaments import arena as open_arena

pytestmark = [pytest.mark.needs("axelrod"), pytest.mark.xdist_group("axelrod"), pytest.mark.timeout(600)]


async def test_a_tournament_of_the_librarys_strategies_has_the_moves_of_its_own_matches(tmp_path: Path) -> None:
    names = ["TitForTat", "Adaptive", "BackStabber", "EvolvedFSM16", "Prober", "Gradual"]
    models = {f"P{place + 1}": f"scripted:axelrod/{name}" for place, name in enumerate(names)}
    with open_arena(tmp_path) as arena:
        run = await arena.play(model="scripted:grim", model_for=models, rounds=12, critique_turns=0)
        found = arena.found(run)
    assert run.metrics["failed_decision_rate"] == 0
    assert run.metrics["comprehension"] == 1
    axl = library()
    game = axl.Game(r=3, s=-1, t=5, p=0)
    for match in found.played:
        players = tuple(getattr(axl, models[player].rpartition("/")[2])() for player in match.players)
        own = axl.Match(players, turns=12, game=game).play()
        assert [(str(one), str(other)) for one, other in own][: len(match.rounds)] == list(match.rounds)
    assert len(found.played) == 12


def test_strategies_of_the_library_are_baselines_of_our_own() -> None:
    assert str(parse_model("scripted:axelrod/TitForTat")) == "scripted:axelrod/TitForTat"
    assert is_own_baseline("scripted:axelrod/TitForTat")
    assert "TitForTat" in describe("axelrod/TitForTat")


@pytest.mark.parametrize("name", ["Grudge", "", "../x"])
def test_a_strategy_that_the_library_lacks_is_told(name: str) -> None:
    with pytest.raises(UsageError, match="unknown axelrod strategy"):
        parse_model(f"scripted:axelrod/{name}")


def test_payoffs_with_which_a_strategy_fails_are_refused_before_anything_is_played() -> None:
    condition = TournamentCondition(structure="sa", model="scripted:axelrod/ZDExtort4")
    with pytest.raises(UsageError, match="can't play with these payoffs"):
        condition.check()
    TournamentCondition(structure="sa", model="scripted:axelrod/ZDExtort4", punishment=1, sucker=0).check()
