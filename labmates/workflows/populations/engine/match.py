"""One game of named players."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame
from labmates.workflows.populations.engine.attitudes import falls_back_to_cooperation
from labmates.workflows.populations.engine.library import load_players
from labmates.workflows.populations.engine.workers import Batch, Loaded, Result, Workers


@dataclass(frozen=True)
class Match:
    """The course of a game.

    Attributes
    ----------
    players
        Their names, by seat.
    game
        The game that they play.
    actions
        Shape ``(rounds, players)``; True for cooperation, or the numbers of named actions.
    payoffs
        The same shape.
    errors
        What players did wrong, by player as it was named: ``count``, ``what`` and ``round`` of the first, and the same
        for each of its ``seats``. Rounds are counted from 0; -1 is when the player was made.
    """

    game: RepeatedGame
    players: tuple[str, ...]
    actions: NDArray[Any]
    payoffs: NDArray[np.float64]
    errors: dict[str, dict[str, Any]]

    @property
    def moves(self) -> list[list[str]]:
        """The moves of each player, round by round."""
        return [[self.game.labels[move] for move in column] for column in self.actions.T.tolist()]

    @property
    def cooperative(self) -> str:
        """The name of the action that counts as cooperation."""
        return self.game.labels[1 if self.game.is_binary else 0]

    @property
    def totals(self) -> NDArray[np.float64]:
        """The payoffs of each player up to each round; shape ``(rounds, players)``."""
        return np.asarray(self.payoffs.cumsum(axis=0))

    def as_json(self) -> dict[str, Any]:
        """The match as an object of JSON."""
        return {
            "actions": [list(row) for row in zip(*self.moves, strict=True)],
            "total_payoffs": self.payoffs.sum(axis=0).tolist(),
            "errors": self.errors,
        }

    def lines(self) -> Iterator[str]:
        """The match as text: moves and total of each player, then errors."""
        for player, moves, total in zip(self.players, self.moves, self.payoffs.sum(axis=0), strict=True):
            yield f"{('' if self.game.is_binary else ' ').join(moves)}  {total:8.2f}  {player}"
        for player, error in self.errors.items():
            where = "before the first round" if error["round"] < 0 else f"in round {error['round']}"
            yield f"{player}: {error['count']} errors, first {where}: {error['what']}"

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of a table: each player in each round."""
        totals, moves = self.totals, self.moves
        for t, payoffs in enumerate(self.payoffs):
            for seat, player in enumerate(self.players):
                facts = {"round": t, "seat": seat, "strategy": player, "move": moves[seat][t]}
                yield {**facts, "payoff": payoffs[seat], "total": totals[t, seat]}


def match_of(
    batch: Batch, result: Result, place: int, players: Sequence[str], refused: Mapping[int, str] | None = None
) -> Match:
    """The game of one group of a batch.

    Parameters
    ----------
    place
        The group's place in the batch.
    players
        Names of the group's players.
    refused
        Why strategies were not run, by their numbers.
    """
    game, group = batch.game, int(batch.group_numbers[place])
    errors: dict[str, dict[str, Any]] = {}
    for seat, (name, strategy) in enumerate(zip(players, batch.groups[place].tolist(), strict=True)):
        if strategy in (refused or {}):
            fault: Mapping[str, Any] | None = {"round": -1, "what": (refused or {})[strategy], "count": game.n_rounds}
        elif strategy in result.errors:
            first = result.errors[strategy]
            usual = {"round": first.round, "what": first.what, "count": game.n_rounds} if first.fatal else None
            fault = first.seats.get(f"{group} {seat}", usual)
        else:
            fault = None
        if fault is not None:
            sums = errors.setdefault(name, {**fault, "count": 0, "seats": {}})
            sums["count"] += fault["count"]
            sums["seats"][str(seat)] = dict(fault)
    actions = result.actions[place : place + 1]
    return Match(game, tuple(players), actions[0], game.play(actions)[0], errors)


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
    refused = {one.index: "; ".join(one.problems) for one in loaded if one.problems}
    return match_of(batch, workers.play([batch])[0], 0, players, refused)


def _attitude(one: Loaded) -> str:
    """The attitude of a class of another name than usual, if its name says one at all."""
    parts = one.name.lower().split("_")
    return parts[1] if parts[0] == "strategy" and len(parts) > 1 else ""
