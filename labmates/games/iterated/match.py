"""One match of the iterated prisoner's dilemma: payoffs, rounds, and why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labmates.errors import UsageError

LABELS = {"C": "action_a", "D": "action_b", "leave": "leave"}
"""Neutral labels of the moves in prompts and replies: they hide the effect on others."""

Action = Literal["C", "D"]
Move = Literal["C", "D", "leave"]
Round = tuple[Action, Action]
"""Both players' moves in one round, the viewer's first."""
End = Literal["length", "chance", "leave", "rounds", "forfeit", "not_played"]
"""Why a match ended: it had its full length; no further round was drawn; somebody left; somebody had no rounds left;
somebody gave no usable move; or it was never played, since somebody had no rounds left when its turn came."""


@dataclass(frozen=True)
class Payoffs:
    """Points of a round, by the game's usual letters (super-additive paper, table 1).

    Attributes
    ----------
    temptation
        Of who defects alone.
    reward
        Of both, when both cooperate.
    punishment
        Of both, when both defect.
    sucker
        Of who cooperates alone.
    """

    temptation: int = 5
    reward: int = 3
    punishment: int = 0
    sucker: int = -1

    def check(self) -> None:
        """Check that this is an iterated prisoner's dilemma.

        Raises
        ------
        UsageError
            Unless temptation > reward > punishment > sucker, and taking turns at defecting pays less than cooperating.
        """
        if not self.temptation > self.reward > self.punishment > self.sucker:
            raise UsageError("in a prisoner's dilemma, temptation > reward > punishment > sucker")
        if not 2 * self.reward > self.temptation + self.sucker:
            raise UsageError("in an iterated prisoner's dilemma, twice the reward is more than temptation plus sucker")

    def of(self, own: Action, other: Action) -> int:
        """The points of a player for a round."""
        if own == "C":
            return self.reward if other == "C" else self.sucker
        return self.temptation if other == "C" else self.punishment

    def total(self, rounds: Sequence[Round]) -> int:
        """The points of whoever is first in these rounds."""
        return sum(self.of(own, other) for own, other in rounds)


def turned(rounds: Sequence[Round]) -> tuple[Round, ...]:
    """Rounds as the other player sees them."""
    return tuple((other, own) for own, other in rounds)


@dataclass(frozen=True)
class Match:
    """A match that is over.

    Attributes
    ----------
    number
        Its place in the tournament's schedule, from 1.
    players
        Names of both.
    teams
        Their teams.
    rounds
        What they did in each round, in the order of `players`.
    end
        Why it ended.
    by
        Who ended it: those who left, had no rounds left, or gave no usable move.
    """

    number: int
    players: tuple[str, str]
    teams: tuple[str, str]
    rounds: tuple[Round, ...]
    end: End
    by: tuple[str, ...] = ()

    @property
    def within_team(self) -> bool:
        """Whether both players are of one team."""
        return self.teams[0] == self.teams[1]

    def opponent(self, player: str) -> str:
        """The opponent of `player`."""
        return self.players[1 - self.players.index(player)]

    def seen_by(self, player: str) -> tuple[Round, ...]:
        """The rounds with what `player` did first."""
        return self.rounds if player == self.players[0] else turned(self.rounds)
