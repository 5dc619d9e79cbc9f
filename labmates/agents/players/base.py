"""Scripted players: baselines that read the orders of a game and play it by a named strategy.

A family is an experiment with its own kinds of orders. A player supports the families in which its strategy is defined.
Elsewhere it replies that it does not know the game, which counts as a failed decision.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from labmates.errors import UsageError
from labmates.games.iterated.match import Action, Payoffs, Round
from labmates.games.iterated.strategies import IN_PRISONERS_DILEMMA
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.registry import Registry

Strategy = Callable[[Any, random.Random], str]
"""Takes a situation and a source of chance, and returns the reply."""
Chooses = Callable[[Sequence[Round], Payoffs, float, int], Action]
"""Takes the rounds of an iterated prisoner's dilemma (own action first), its payoffs, its number of rounds (infinity if
unknown) and a seed, and returns the next action. Raises `StrategyError` if there is none."""


class StrategyError(Exception):
    """A strategy has failed to choose."""


@dataclass(frozen=True)
class Family:
    """Players of one experiment.

    Attributes
    ----------
    read
        Makes the situation out of the facts of the orders, in whatever form the strategies take it; None if it can't be
        played.
    strategies
        By the name of the baseline.
    of_rounds
        Makes the strategy that chooses by the rounds of an iterated prisoner's dilemma; None where none is played.
    """

    read: Callable[[Heard], Any]
    strategies: Mapping[str, Strategy]
    of_rounds: Callable[[Chooses], Strategy] | None = None

    def strategy(self, baseline: str, chooses: Chooses | None = None) -> Strategy | None:
        """The strategy of a baseline, or the one that chooses so; None if it means nothing here."""
        if chooses is not None and self.of_rounds is not None:
            return self.of_rounds(chooses)
        return self.strategies.get(baseline)


PLAYERS: Registry[Family] = Registry("family of players", "labmates.players")
"""Families by the kind of their orders."""


def family_of(heard: Heard) -> Family | None:
    """The family of players for a request; None if there is none."""
    return PLAYERS.get(heard.kind) if heard.kind in PLAYERS else None


class Player(ScriptedModel):
    """Plays every family of games in which there is a strategy of its name."""

    baseline: ClassVar[str]
    chooses: ClassVar[Chooses | None] = None
    checks: ClassVar[Callable[[Payoffs], None] | None] = None

    def compose(self, heard: Heard) -> Draft:
        """Reply of the strategy."""
        family = family_of(heard)
        if family is None or not family.strategies or (situation := family.read(heard)) is None:
            return Draft("This is no game that I know.")
        if (strategy := family.strategy(self.baseline, type(self).chooses)) is None:
            return Draft(f"I do not play {heard.kind} games.")
        try:
            return Draft(strategy(situation, random.Random(heard.seed)))
        except StrategyError as error:
            return Draft(f"My strategy has failed: {error}")


def player(
    baseline: str, about: str, chooses: partial[Action] | None = None, checks: partial[None] | None = None
) -> type[Player]:
    """The player that follows the strategies called `baseline`, or the one that chooses so.

    Parameters
    ----------
    checks
        Raises a `UsageError` for payoffs with which it can't play.
    """
    made = {"__doc__": about, "baseline": baseline, "description": about, "chooses": chooses, "checks": checks}
    return type("".join(re.findall(r"[^\W_]+", baseline.title())), (Player,), made)


def check_player(baseline: str, payoffs: Payoffs) -> None:
    """Check that a scripted player can play the iterated game with these payoffs.

    Raises `UsageError` if it can't, or needs a prisoner's dilemma.
    """
    if baseline in IN_PRISONERS_DILEMMA and payoffs.game != "prisoner's dilemma":
        raise UsageError(f"scripted:{baseline} needs a prisoner's dilemma, not a game of {payoffs.game}")
    if (checks := getattr(BASELINES.get(baseline), "checks", None)) is not None:
        checks(payoffs)
