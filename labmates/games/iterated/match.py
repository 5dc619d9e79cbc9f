"""Matches of an iterated social dilemma of two players: payoffs, rounds, and why a match ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labmates.errors import UsageError

LABELS = {"C": "action_a", "D": "action_b", "leave": "leave"}
"""Neutral labels of the moves in prompts and replies, which hide the effect on others."""

Action = Literal["C", "D"]
Move = Literal["C", "D", "leave"]
Round = tuple[Action, Action]
"""Both players' moves in one round, the viewer's first."""
End = Literal["length", "chance", "leave", "rounds", "forfeit", "not_played"]
"""Why a match ended: full length; no further round drawn; a player left; a player had no rounds left; a player made no
usable move; or not played, since a player had no rounds left when its turn came."""


@dataclass(frozen=True)
class Payoffs:
    """Points of a round, by the game's usual letters (super-additive paper, table 1).

    Attributes
    ----------
    temptation, sucker
        Of a lone defector and of a lone cooperator.
    reward, punishment
        Of each player after mutual cooperation and after mutual defection.
    """

    temptation: int = 5
    reward: int = 3
    punishment: int = 0
    sucker: int = -1

    @property
    def game(self) -> str:
        """The name of the game.

        Raises `UsageError` if it is not a social dilemma (Macy and Flache 2002): mutual cooperation beats mutual
        defection, lone cooperation and taking turns, and a lone defector gains or a lone cooperator loses.
        """
        if not self.reward > max(self.punishment, self.sucker):
            raise UsageError("payoffs: a social dilemma needs reward > punishment and reward > sucker")
        if not 2 * self.reward > self.temptation + self.sucker:
            raise UsageError("payoffs: an iterated social dilemma needs 2 × reward > temptation + sucker")
        has_greed, has_fear = self.temptation > self.reward, self.punishment > self.sucker
        if not (has_greed or has_fear):
            raise UsageError("payoffs: a social dilemma needs temptation > reward or punishment > sucker")
        return "prisoner's dilemma" if has_greed and has_fear else "chicken" if has_greed else "stag hunt"

    @property
    def range(self) -> tuple[int, int]:
        """The fewest and most points of a round."""
        points = self.temptation, self.reward, self.punishment, self.sucker
        return min(points), max(points)

    def of(self, own: Action, other: Action) -> int:
        """The points of a player for a round."""
        if own == "C":
            return self.reward if other == "C" else self.sucker
        return self.temptation if other == "C" else self.punishment

    def total(self, rounds: Sequence[Round]) -> int:
        """The points of the first player over these rounds."""
        return sum(self.of(own, other) for own, other in rounds)


def turned(rounds: Sequence[Round]) -> tuple[Round, ...]:
    """Rounds as the other player sees them."""
    return tuple((other, own) for own, other in rounds)


@dataclass(frozen=True)
class Match:
    """A completed match."""

    number: int  # its place in the tournament's schedule, from 1
    # Names of both players and of their teams.
    players: tuple[str, str]
    teams: tuple[str, str]
    rounds: tuple[Round, ...]  # the executed moves of each round, in the order of `players`
    end: End  # why it ended
    by: tuple[str, ...] = ()  # the players who ended it: those who left, had no rounds left, or made no usable move
    chosen: tuple[Round, ...] = ()  # the chosen moves, if noise may have flipped them; by default those executed

    @property
    def within_team(self) -> bool:
        """Whether both players are of one team."""
        return self.teams[0] == self.teams[1]

    def opponent(self, player: str) -> str:
        """The opponent of `player`."""
        return self.players[1 - self.players.index(player)]

    def seen_by(self, player: str) -> tuple[Round, ...]:
        """The rounds as executed, with the moves of `player` first."""
        return self.rounds if player == self.players[0] else turned(self.rounds)

    def chosen_by(self, player: str) -> tuple[Action, ...]:
        """The moves that `player` chose."""
        seat = self.players.index(player)
        return tuple(both[seat] for both in self.chosen or self.rounds)
