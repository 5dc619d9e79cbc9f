from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from labmates.errors import UsageError, explain
from labmates.stats.domains import ANY, Domain
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.experiment import TOURNAMENT, estimate

BASE: dict[str, Any] = {"structure": "sa", "model": "scripted:grim"}


def condition(**values: Any) -> TournamentCondition:
    return TournamentCondition.model_validate({**BASE, **values})


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ({}, 80),
        ({"structure": "gc"}, 48),
        ({"rounds": 7}, 28),
        ({"team_size": "3,2"}, 64),
        ({"rounds_per_player": 99}, 99),
    ],
)
def test_the_number_of_rounds_is_written_down(values: dict[str, Any], total: int) -> None:
    wanted = condition(**values)
    assert wanted.rounds_per_player == wanted.total_rounds == total
    assert wanted.model_dump()["rounds_per_player"] == total
    assert condition(**{**values, "rounds_per_player": total}).key == wanted.key
    assert condition(**wanted.model_dump()) == wanted


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"rounds_per_player": 100}, "must be below 100"),
        ({"structure": "gc", "rounds_per_player": 60}, "must be below 60"),
        ({"structure": "gc", "team_size": "3,2", "rounds_per_player": 40}, "must be below 40"),
        ({"structure": "gc", "teams": 1}, "at least two teams"),
        ({"teams": 1, "team_size": 1}, "at least two players"),
        ({"teams": 2, "team_size": 1, "rounds": 1}, "at least two rounds"),
        ({"team_size": "3,2,1"}, "names 3 sizes for 2 teams"),
        ({"team_size": "three"}, "must be a number from 1 to 50"),
        ({"team_size": 0}, "must be a number from 1 to 50"),
        ({"structure": "xx"}, "'ri', 'gc' or 'sa'"),
        ({"temptation": 2, "sucker": 0}, "temptation > reward or punishment > sucker"),
        ({"plans": "shared", "structure": "ri"}, "shared plans need"),
        ({"plans": "shared", "team_size": 1}, "shared plans need"),
        ({"plans": "shared", "critique_turns": 0}, "shared plans need"),
        ({"temptation": 50}, "2 × reward"),
        ({"rounds": 0}, "must be at least 1, not 0"),
        ({"critique_turns": 9}, "must be at most 5, not 9"),
        ({"team_choice": "wished", "structure": "ri"}, "need the structure gc or sa"),
        ({"team_choice": "wished", "team_size": "3,2"}, "at least two teams of equal size"),
        ({"team_choice": "wished", "model_for": {"B": "scripted:grim"}}, "give models to players"),
        ({"comprehension": "maybe"}, "'asked' or 'skipped'"),
    ],
)
def test_what_can_not_be_played_is_refused_and_told(values: dict[str, Any], wrong: str) -> None:
    with pytest.raises((ValidationError, UsageError)) as caught:
        condition(**values)
    error = caught.value
    assert wrong in (explain(error) if isinstance(error, ValidationError) else str(error))


def test_sizes_of_teams_are_written_shortest() -> None:
    assert condition(team_size=3).key == condition(team_size="3,3").key == condition().key
    assert condition(team_size=" 3, 2").players_of == {"A": ["P1", "P2", "P3"], "B": ["P4", "P5"]}


def test_models_belong_to_teams_and_players() -> None:
    wanted = condition(model_for={"B": "scripted:joss", "P5": "scripted:defect"})
    assert [wanted.model_of(player) for player in ("P1", "P4", "P5")] == [
        "scripted:grim",
        "scripted:joss",
        "scripted:defect",
    ]
    wanted.check()
    with pytest.raises(UsageError, match="unknown team or player 'C'"):
        condition(model_for={"C": "scripted:joss"}).check()
    with pytest.raises(UsageError, match="unknown scripted baseline"):
        condition(model_for={"A": "scripted:jos"}).check()
    with pytest.raises(UsageError, match="scripted:extort-2 needs a prisoner's dilemma, not a game of stag hunt"):
        condition(model_for={"A": "scripted:extort-2"}, reward=6).check()


def test_the_estimate_counts_the_calls_of_a_tournament_at_full_length() -> None:
    # 99 rounds, 19 plans of three calls, and questions after five matches, the last a round short, for six players.
    assert estimate(condition(rounds_per_player=99)).calls == 6 * (99 + 57 + 5)
    assert estimate(condition(rounds_per_player=90)).calls == 6 * (90 + 51 + 5)
    assert estimate(condition(critique_turns=0, comprehension="skipped")).calls == 480


def test_the_interval_of_points_stays_within_the_points_of_a_round() -> None:
    condition = TournamentCondition(structure="sa", model="scripted:grim").model_dump(mode="json")
    assert TOURNAMENT.domains(condition)["points_per_round"] == Domain(-1, 5)
    assert TOURNAMENT.domains({})["points_per_round"] == ANY
