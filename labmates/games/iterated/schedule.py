"""Teams by the players' wishes, and the schedule of a tournament, in rounds of matches without common players.

A schedule has all pairs of players, or only pairs across teams. All matches of a round can run in parallel.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

import numpy as np

_STARTS = 8
Pairing = tuple[str, str]


def form_teams(
    sizes: Mapping[str, int], wishes: Mapping[str, Sequence[str]], *, seed: int
) -> tuple[dict[str, list[str]], int]:
    """Teams of these sizes, and the number of wishes that they fulfil.

    Local search from several random assignments: the exchange of two players that fulfils most further wishes is made
    until no exchange does. The best result counts.

    Parameters
    ----------
    sizes
        Of each team.
    wishes
        For each player, its desired teammates; every player has an entry.
    seed
        Of the random assignments.
    """
    players = list(wishes)
    place = {player: number for number, player in enumerate(players)}
    wanted = np.zeros((len(players), len(players)), int)
    for player, others in wishes.items():
        for other in others:
            wanted[place[player], place[other]] = 1
    rng = random.Random(seed)
    seats = [team for team, size in enumerate(sizes.values()) for _ in range(size)]
    attempts = [_exchanged(wanted, np.array(rng.sample(seats, len(seats))), len(sizes)) for _ in range(_STARTS)]
    best = max(attempts, key=lambda teams: _fulfilled(wanted, teams))
    formed: dict[str, list[str]] = {team: [] for team in sizes}
    for player, number in zip(players, best.tolist(), strict=True):
        formed[list(sizes)[number]].append(player)
    return formed, _fulfilled(wanted, best)


def _fulfilled(wanted: np.ndarray, teams: np.ndarray) -> int:
    return int(wanted[teams[:, None] == teams[None, :]].sum())


def _exchanged(wanted: np.ndarray, teams: np.ndarray, number: int) -> np.ndarray:
    """Teams after greedy exchanges of two players, until none fulfils more wishes."""
    both, everybody = wanted + wanted.T, np.arange(len(teams))
    while True:
        # Wishes between each player and each team, from either side.
        with_team = both @ (teams[:, None] == np.arange(number))
        moved = with_team[:, teams] - with_team[everybody, teams][:, None]
        gain = moved + moved.T - 2 * both
        gain[teams[:, None] == teams[None, :]] = 0
        one, other = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[one, other] <= 0:
            return teams
        teams[[one, other]] = teams[[other, one]]


def schedule(teams: Mapping[str, Sequence[str]], *, within_teams: bool, seed: int) -> list[list[Pairing]]:
    """The rounds of a tournament, each a list of pairs; every scheduled pair meets once.

    The number of rounds is minimal for all pairs, for two teams, and for an even number of teams of equal size. Other
    schedules may take some more.

    Parameters
    ----------
    teams
        Players of each team.
    within_teams
        Whether players of one team meet too.
    seed
        Of the order of rounds, of the matches in a round, and of the players in a match.
    """
    rng = random.Random(seed)
    sides = [rng.sample(list(team), len(team)) for team in rng.sample(list(teams.values()), len(teams))]
    everybody = [player for side in sides for player in side]
    team_of = {player: number for number, side in enumerate(sides) for player in side}
    if within_teams:
        rounds = [pairs for pairs in _circle(rng.sample(everybody, len(everybody))) if pairs]
    else:
        all_rounds = _circle(everybody)
        across = [[pair for pair in pairs if team_of[pair[0]] != team_of[pair[1]]] for pairs in all_rounds]
        rounds = min(_closed_up(across), _closed_up(_by_sides(sides)), key=len)
    rng.shuffle(rounds)
    return [_shuffled(pairs, rng) for pairs in rounds]


def _circle(players: Sequence[str]) -> list[list[Pairing]]:
    """The rounds of the circle method: one player stays, the others rotate."""
    seats: list[str | None] = [*players, *([None] if len(players) % 2 else [])]
    if len(seats) < 2:
        return []
    rounds = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        across = zip(seats[:half], reversed(seats[half:]), strict=True)
        rounds.append([(one, other) for one, other in across if one is not None and other is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return rounds


def _by_sides(sides: Sequence[Sequence[str]]) -> list[list[Pairing]]:
    """The rounds of the circle method over teams, and within each pair of teams over players."""
    numbers = [str(number) for number in range(len(sides))]
    rounds: list[list[Pairing]] = []
    for meetings in _circle(numbers):
        duels = [_duel(sides[int(one)], sides[int(other)]) for one, other in meetings]
        rounds += [[pair for pairs in together for pair in pairs] for together in zip_longest(*duels, fillvalue=[])]
    return rounds


def _duel(one: Sequence[str], other: Sequence[str]) -> list[list[Pairing]]:
    long, short = (one, other) if len(one) >= len(other) else (other, one)
    return [
        [(long[(turn + place) % len(long)], player) for place, player in enumerate(short)] for turn in range(len(long))
    ]


def _closed_up(rounds: Sequence[Sequence[Pairing]]) -> list[list[Pairing]]:
    """The same pairs, each in the first round with both players free."""
    busy: list[set[str]] = []
    closed: list[list[Pairing]] = []
    for pair in chain.from_iterable(rounds):
        place = next((n for n, players in enumerate(busy) if players.isdisjoint(pair)), len(busy))
        if place == len(busy):
            busy.append(set())
            closed.append([])
        busy[place].update(pair)
        closed[place].append(pair)
    return closed


def _shuffled(pairs: Sequence[Pairing], rng: random.Random) -> list[Pairing]:
    turned = [pair if rng.random() < 0.5 else (pair[1], pair[0]) for pair in pairs]
    rng.shuffle(turned)
    return turned
