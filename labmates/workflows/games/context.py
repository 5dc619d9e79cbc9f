"""The context of a behavioural game's graph: the game and the players."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from labmates.games.base import Array, Game
from labmates.records.events import DecisionEvent
from labmates.stats.validity import Tally, tallies
from labmates.workflows.calls import Speaker
from labmates.workflows.games.briefs import Briefing
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.playing import Table


@dataclass(frozen=True)
class GameContext:
    """The context of one run.

    Attributes
    ----------
    seed
        The run's seed.
    """

    condition: GameCondition
    game: Game
    table: Table
    seed: int

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
        """The speaker for this player."""
        return self._speakers[player]

    def by_player(self, values: Array) -> dict[str, float]:
        """An array of shape ``(groups, group_size)`` by player."""
        return dict(zip((player for _, player in self.seats), map(float, values.ravel()), strict=True))

    def failures(self) -> dict[str, Tally]:
        """Count decisions, and those that had to be replaced by the fallback, by model."""
        events = self.table.recorder.events
        made = (one for one in events if isinstance(one, DecisionEvent))
        return tallies((self.condition.model_of(one.team, one.agent), one.failed) for one in made)
