"""Mediation: players may let a mediator act for them, who looks at how many do (CoopEval, section 3)."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np

from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm, Profile, check_size, cooperation
from labmates.mechanisms.base import Answer, Blank, Sheet
from labmates.mechanisms.negotiation import Negotiation

DELEGATE = "delegate"


class Mediation(Negotiation):
    """A mediator that is agreed on plays one action for all who delegate to it."""

    name: ClassVar[str] = "mediation"
    title: ClassVar[str] = "Mediation"
    summary: ClassVar[str] = (
        "Players propose mediators and vote. A mediator says, for each number of delegators, which action it takes for "
        "each of them; the game gets one more action, to delegate."
    )
    thing: ClassVar[str] = "mediator"

    def rules(self, game: NormalForm) -> str:
        """Say what a mediator is."""
        return (
            f'{self.voting()} With a mediator, the game has one more action, "{DELEGATE}": the mediator acts for '
            "a player who takes it. The mediator considers only how many players delegate, and takes the same action "
            "for each of them, as its design says."
        )

    def check(self, game: NormalForm) -> None:
        """Check that all players have as many actions, since the mediator takes one for all."""
        if len(set(map(len, game.labels))) > 1:
            raise UsageError("a mediator needs a game in which all players have the same number of actions")
        if any(DELEGATE in own for own in game.labels):
            raise UsageError("a mediator can't enclose a game that already has one")
        check_size([len(own) + 1 for own in game.labels])

    def sheet(self, game: NormalForm) -> Sheet:
        """A blank for each number of delegators."""
        return Sheet(
            tuple(
                Blank(str(number), game.labels[0], f"the action when {number} of {game.players} delegate")
                for number in range(1, game.players + 1)
            ),
            {},
        )

    def ask_for(self, game: NormalForm) -> str:
        """Ask for a mediator."""
        return "Propose a mediator: for each number of players who delegate, the action it takes for each of them."

    def tell(self, game: NormalForm, design: Answer) -> str:
        """Say which action is taken for how many delegators."""
        return ", ".join(f"{design[str(number)]} if {number} delegate" for number in range(1, game.players + 1))

    def apply(self, game: NormalForm, design: Answer) -> NormalForm:
        """The game with one more action."""
        n, more = game.players, len(game.labels[0])
        payoffs = np.empty((more + 1,) * n + (n,), dtype=object)
        for profile in product(range(more + 1), repeat=n):
            payoffs[profile] = game.payoffs[_acted(game, design, profile)]
        all_delegate = (more,) * n
        return NormalForm(
            tuple((*own, DELEGATE) for own in game.labels),
            payoffs,
            all_delegate if _acted(game, design, all_delegate) == cooperation(game) else None,
            game.defect,
        )

    def cooperative(self, game: NormalForm, design: Answer) -> list[Profile]:
        """All plays in which everybody cooperates, or delegates to a mediator that does."""
        good, more = cooperation(game), len(game.labels[0])
        if good is None:
            return []
        plays = product(*((action, more) for action in good))
        return [profile for profile in plays if _acted(game, design, profile) == good]


def _acted(game: NormalForm, design: Answer, profile: Profile) -> Profile:
    """The actions after the mediator has acted for all who delegate."""
    more = len(game.labels[0])
    delegators = profile.count(more)
    taken = game.labels[0].index(design[str(delegators)]) if delegators else more
    return tuple(taken if action == more else action for action in profile)
