"""Teams formed by what players wish: as many wishes as possible come true."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np

_STARTS = 8


def form_teams(
    sizes: Mapping[str, int], wishes: Mapping[str, Sequence[str]], *, seed: int
) -> tuple[dict[str, list[str]], int]:
    """Teams of these sizes, and how many wishes to be with somebody come true in them.

    From several random teams on, the two players whose exchange makes most wishes come true change places until no
    exchange does any more; the best result counts.

    Parameters
    ----------
    sizes
        Of each team.
    wishes
        For each player, whom it wants to be with. All players have an entry.
    seed
        Of the teams to start from.
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
    """Teams in which no exchange of two players makes more wishes come true."""
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
