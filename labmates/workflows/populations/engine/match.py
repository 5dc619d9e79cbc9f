"""One game of named players."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame
from labmates.workflows.populations.engine.attitudes import falls_back_to_cooperation
from labmates.workflows.populations.engine.library import load_players
from labmates.workflows.populations.engine.workers import Batch, Loaded, Workers


@dataclass(frozen=True)
class Match:
    """What came of a game.

    Attributes
    ----------
    actions
        Shape ``(rounds, players)``; True for cooperation.
    payoffs
        The same shape.
    errors
        What players did wrong, by player as it was named: ``count``, ``what`` and ``round`` of the first, and the same
        for each of its ``seats``. Rounds are counted from 0; -1 is when the player was made.
    """

    actions: NDArray[np.bool_]
    payoffs: NDArray[np.float64]
    errors: dict[str, dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """The match as an object of JSON."""
        return {
            "actions": [["C" if one else "D" for one in row] for row in self.actions],
            "total_payoffs": self.payoffs.sum(axis=0).tolist(),
            "errors": self.errors,
        }


def play_match(workers: Workers, game: RepeatedGame, players: Sequence[str], *, seed: int = 0) -> Match:
    """Play one game.

    Parameters
    ----------
    players
        ``FILE.py:CLASS`` or ``reference:NAME``, in the order of the seats.

    Raises
    ------
    UsageError
        If a player can't be found.
    """
    loaded = load_players(workers, players)
    cooperate = frozenset(one.index for one in loaded if falls_back_to_cooperation(one.attitude or _attitude(one)))
    batch = Batch(game, np.array([[one.index for one in loaded]]), seed=seed, cooperate=cooperate)
    result = workers.play([batch])[0]
    errors: dict[str, dict[str, Any]] = {}
    for seat, (name, one) in enumerate(zip(players, loaded, strict=True)):
        if one.problems:
            told = {"round": -1, "what": "; ".join(one.problems), "count": game.n_rounds}
        elif one.index in result.errors:
            first = result.errors[one.index]
            usual = {"round": first.round, "what": first.what, "count": game.n_rounds} if first.fatal else None
            found = first.seats.get(f"0 {seat}", usual)
            if found is None:
                continue
            told = dict(found)
        else:
            continue
        sums = errors.setdefault(name, {**told, "count": 0, "seats": {}})
        sums["count"] += told["count"]
        sums["seats"][str(seat)] = told
    return Match(result.actions[0], result.payoffs(batch)[0], errors)


def _attitude(one: Loaded) -> str:
    """The attitude of a class of another name than usual, if its name says one at all."""
    parts = one.name.lower().split("_")
    return parts[1] if parts[0] == "strategy" and len(parts) > 1 else ""
