from __future__ import annotations

from collections import Counter
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.games.iterated.schedule import schedule


def teams_of(*sizes: int) -> dict[str, list[str]]:
    return {f"team {n}": [f"{n}-{place}" for place in range(size)] for n, size in enumerate(sizes)}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.booleans(), st.integers(0, 1000))
def test_every_pair_meets_once_and_nobody_plays_twice_at_the_same_time(
    sizes: list[int], within_teams: bool, seed: int
) -> None:
    teams = teams_of(*sizes)
    rounds = schedule(teams, within_teams=within_teams, seed=seed)
    met = Counter(frozenset(pair) for pairs in rounds for pair in pairs)
    team_of = {player: name for name, team in teams.items() for player in team}
    possible = combinations(team_of, 2)
    assert met == Counter(frozenset(pair) for pair in possible if within_teams or len({*map(team_of.get, pair)}) == 2)
    for pairs in rounds:
        players = list(chain.from_iterable(pairs))
        assert len(players) == len(set(players)) > 0


@pytest.mark.parametrize(
    ("sizes", "within_teams", "matches", "rounds"),
    [
        ((3, 3), True, 15, 5),
        ((3, 3), False, 9, 3),
        ((5,), True, 10, 5),
        ((4, 2), False, 8, 4),
        ((2,) * 4, False, 24, 6),
    ],
)
def test_as_many_matches_as_possible_go_on_at_the_same_time(
    sizes: tuple[int, ...], within_teams: bool, matches: int, rounds: int
) -> None:
    for seed in range(20):
        plan = schedule(teams_of(*sizes), within_teams=within_teams, seed=seed)
        assert (sum(map(len, plan)), len(plan)) == (matches, rounds)


def test_the_seed_decides_the_order_and_nothing_else_does() -> None:
    plans = [schedule(teams_of(3, 3), within_teams=True, seed=seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_no_player_plays_all_of_its_matches_first() -> None:
    for seed in range(50):
        first, *_ = schedule(teams_of(3, 3), within_teams=True, seed=seed)
        assert len(set(chain.from_iterable(first))) == 6


def test_who_meets_whom_first_differs_from_seed_to_seed() -> None:
    firsts = Counter(
        frozenset(pair) for seed in range(300) for pair in schedule(teams_of(3, 3), within_teams=True, seed=seed)[0]
    )
    assert len(firsts) == 15
    assert min(firsts.values()) > 30  # each of 15 pairs is expected 60 times
