"""Scripted players: baselines that read the prompt of a game, as a model would, and play it by a named strategy.

A family is a kind of game with prompts of its own. A player knows the families in which its strategy means something,
and says so where it is asked for anything else; that reply is no decision, and is counted as a failed one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage

from labmates.models.scripted.base import Draft, Heard, ScriptedModel

Strategy = Callable[[Any, random.Random], str]
"""Takes what a prompt says and a source of chance, and returns the reply."""

FAMILIES = (
    "labmates.agents.players.behavioural",
    "labmates.agents.players.dilemma",
    "labmates.agents.players.tournament",
)
"""Modules with a `FAMILY` each; imported when a player is first asked."""
LIBRARY = "axelrod/"
"""How the names of baselines begin that are strategies of the library axelrod."""


@dataclass(frozen=True)
class Family:
    """Games whose prompts are read alike.

    Attributes
    ----------
    read
        Returns what the messages say, in whatever form the strategies take it; None if they are not of this family.
    strategies
        By the name of the baseline.
    library
        Makes the strategy of the library axelrod of that name; None where its strategies mean nothing.
    """

    name: str
    read: Callable[[Sequence[BaseMessage]], Any | None]
    strategies: Mapping[str, Strategy]
    library: Callable[[str], Strategy] | None = None

    def strategy(self, baseline: str) -> Strategy | None:
        """Return the strategy of a baseline; None if it means nothing here."""
        if baseline.startswith(LIBRARY) and self.library is not None:
            return self.library(baseline.removeprefix(LIBRARY))
        return self.strategies.get(baseline)


class Player(ScriptedModel):
    """Plays every family of games in which there is a strategy of its name."""

    baseline: ClassVar[str]

    def compose(self, heard: Heard) -> Draft:
        """Return the reply of the strategy."""
        for family in families():
            if (situation := family.read(heard.messages)) is None:
                continue
            if (strategy := family.strategy(self.baseline)) is None:
                return Draft(f"I do not play {family.name} games.")
            return Draft(strategy(situation, random.Random(heard.seed)))
        return Draft("This is no game that I know.")


def families() -> list[Family]:
    """Return all families of games."""
    return [import_module(name).FAMILY for name in FAMILIES]
