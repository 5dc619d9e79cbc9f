from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from labmates.games.iterated.schedule import form_teams

PLAYERS = [f"P{number}" for number in range(6)]


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, list[str]]:
    return {
        player: draw(st.lists(st.sampled_from([one for one in PLAYERS if one != player]), max_size=2, unique=True))
        for player in PLAYERS
    }


def fulfilled(teams: list[set[str]], wished: dict[str, list[str]]) -> int:
    return sum(other in team for team in teams for player in team for other in wished[player])


@given(wishes(), st.integers(0, 100))
def test_no_other_teams_fulfil_more_wishes(wished: dict[str, list[str]], seed: int) -> None:
    teams, count = form_teams({"A": 3, "B": 3}, wished, seed=seed)
    assert [len(players) for players in teams.values()] == [3, 3]
    assert sorted(player for players in teams.values() for player in players) == PLAYERS
    assert count == fulfilled([set(players) for players in teams.values()], wished)
    best = max(fulfilled([set(one), set(PLAYERS) - set(one)], wished) for one in combinations(PLAYERS, 3))
    assert count == best
    assert form_teams({"A": 3, "B": 3}, wished, seed=seed) == (teams, count)
