"""What the nodes of a behavioural game's graph work with: the game, the players, and what has happened."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from labmates.games.base import Array, Game
from labmates.records.events import DecisionEvent
from labmates.stats.validity import Tally, tallies
from labmates.workflows.calls import Speaker
from labmates.workflows.games.briefs import Briefing, Round
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.playing import Table


@dataclass
class GameContext:
    """The context of one run.

    Attributes
    ----------
    draws
        The run's own source of chance.
    seed
        The run's seed.
    rounds
        All rounds so far, the present one last.
    kept
        Whether the players keep, at the end, what they have got.
    """

    condition: GameCondition
    game: Game
    table: Table
    draws: random.Random
    seed: int
    rounds: list[Round] = field(default_factory=list)
    kept: bool = True

    @cached_property
    def seats(self) -> list[tuple[str, str]]:
        """Group and name of every player, in order."""
        return self.condition.seats()

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The players of each group."""
        groups: dict[str, list[str]] = {}
        for group, player in self.seats:
            groups.setdefault(group, []).append(player)
        return groups

    @cached_property
    def briefing(self) -> Briefing:
        """Writes the prompts."""
        return Briefing(self.condition, self.game)

    @cached_property
    def _speakers(self) -> dict[str, Speaker]:
        return {player: Speaker(group, player, self.condition.model_of(group, player)) for group, player in self.seats}

    def speaker(self, player: str) -> Speaker:
        """Return who speaks when this player does."""
        return self._speakers[player]

    def history(self) -> Array:
        """Return all decisions, ``(rounds, groups, group_size, quantities)``."""
        return np.stack([one.decisions for one in self.rounds if one.decisions is not None])

    def payoffs(self) -> Array:
        """Return all payoffs, ``(rounds, groups, group_size)``."""
        return np.stack([one.payoffs for one in self.rounds if one.payoffs is not None])

    def by_player(self, values: Array) -> dict[str, float]:
        """Return an array of shape ``(groups, group_size)`` by player."""
        return dict(zip((player for _, player in self.seats), map(float, values.ravel()), strict=True))

    def failures(self) -> dict[str, Tally]:
        """Count decisions, and those that had to be replaced by the fallback, by model."""
        events = self.table.recorder.events
        made = (one for one in events if isinstance(one, DecisionEvent))
        return tallies((self.condition.model_of(one.team, one.agent), one.failed) for one in made)

    def draw(self) -> float:
        """Draw a number at random from [0, 1)."""
        return self.draws.random()
