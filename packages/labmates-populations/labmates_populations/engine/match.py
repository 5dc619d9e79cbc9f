"""One game of named players."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.kernel.ways import slower, told
from labmates_populations.engine.library import load_players
from labmates_populations.engine.workers import Batch, Loaded, Result, Workers
from labmates_populations.repeated import RepeatedGame


@dataclass(frozen=True)
class Match:
    """The course of a game.

    Attributes
    ----------
    players
        Their names, by seat.
    actions
        Shape ``(rounds, players)``; True for cooperation, or indices of named actions.
    payoffs
        The same shape.
    errors
        Failures by player's name: ``count``, ``what`` and ``round`` of the first, and the same for each of its
        ``seats``. Rounds start at 0; -1 is the player's creation.
    ways, whys, microseconds
        How each player is played, the reason for which it is not compiled, by name, and what a decision took in each
        way.
    """

    game: RepeatedGame
    players: tuple[str, ...]
    actions: NDArray[Any]
    payoffs: NDArray[np.float64]
    errors: dict[str, dict[str, Any]]
    ways: Mapping[str, str] = field(default_factory=dict)
    whys: Mapping[str, str] = field(default_factory=dict)
    microseconds: Mapping[str, float] = field(default_factory=dict)

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
        """The match as JSON data."""
        return {
            "actions": [list(row) for row in zip(*self.moves, strict=True)],
            "total_payoffs": self.payoffs.sum(axis=0).tolist(),
            "errors": self.errors,
            **{name: dict(getattr(self, name)) for name in ("ways", "whys", "microseconds")},
        }

    def lines(self) -> Iterator[str]:
        """The match as text: moves and total of each player, then errors."""
        for player, moves, total in zip(self.players, self.moves, self.payoffs.sum(axis=0), strict=True):
            yield f"{('' if self.game.is_binary else ' ').join(moves)}  {total:8.2f}  {player}"
        for player, error in self.errors.items():
            where = "before the first round" if error["round"] < 0 else f"in round {error['round']}"
            yield f"{player}: {error['count']} errors, first {where}: {error['what']}"
        if self.ways:
            yield told(Counter(self.ways.values()), self.microseconds).capitalize()
        yield from slower(self.whys)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Table rows: one per player and round."""
        totals, moves = self.totals, self.moves
        for t, payoffs in enumerate(self.payoffs):
            for seat, player in enumerate(self.players):
                facts = {"round": t, "seat": seat, "strategy": player, "move": moves[seat][t]}
                yield {**facts, "payoff": payoffs[seat], "total": totals[t, seat]}


def match_of(
    batch: Batch, result: Result, place: int, players: Sequence[str], refused: Mapping[int, str] | None = None
) -> Match:
    """The game of the group at index `place` of a batch, with the players' names.

    Parameters
    ----------
    refused
        Reasons why strategies were not run, by index.
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
    cooperate = frozenset(
        player.index for player in loaded if falls_back_to_cooperation(player.attitude or _attitude(player))
    )
    batch = Batch(game, np.array([[player.index for player in loaded]]), seed=seed, cooperate=cooperate)
    refused = {player.index: "; ".join(player.problems) for player in loaded if player.problems}
    result = workers.play([batch])[0]
    named = {name: one for name, one in zip(players, loaded, strict=True) if not one.problems}
    return replace(
        match_of(batch, result, 0, players, refused),
        ways={name: one.way for name, one in named.items()},
        whys={name: one.why for name, one in named.items() if one.why},
        microseconds={way: cost.microseconds for way, cost in result.costs.items()},
    )


def _attitude(player: Loaded) -> str:
    """The attitude in a nonstandard class name; empty if there is none."""
    parts = player.name.lower().split("_")
    return parts[1] if parts[0] == "strategy" and len(parts) > 1 else ""
