"""Mediation: players may let a mediator act for them, by the number of delegators (CoopEval, section 3)."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np

from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm, Profile, check_size, cooperation
from labmates.mechanisms.base import Blank, Sheet
from labmates.mechanisms.negotiation import Negotiation
from labmates.mechanisms.wording import Answer

DELEGATE = "delegate"


class Mediation(Negotiation):
    """An agreed mediator takes one action for all players who delegate to it."""

    name: ClassVar[str] = "mediation"
    title: ClassVar[str] = "Mediation"
    summary: ClassVar[str] = (
        "Players propose mediators and vote. A mediator says, for each number of delegators, which action it takes for "
        "each of them; the game gets one more action, to delegate."
    )
    thing: ClassVar[str] = "mediator"
    transfers: ClassVar[bool] = False

    def rules(self, game: NormalForm) -> str:
        """The rule on mediators."""
        return (
            f'{self.voting()} With a mediator, the game has one more action, "{DELEGATE}": the mediator acts for '
            "a player who takes it. The mediator considers only how many players delegate, and takes the same action "
            "for each of them, as its design says."
        )

    def check(self, game: NormalForm) -> None:
        """Check that all players have the same number of actions, since the mediator takes one for all."""
        if len(set(map(len, game.labels))) > 1:
            raise UsageError("a mediator needs a game in which all players have the same number of actions")
        if any(DELEGATE in labels for labels in game.labels):
            raise UsageError("a mediator can't enclose a game that already has one")
        check_size([len(labels) + 1 for labels in game.labels])

    def sheet(self, game: NormalForm) -> Sheet:
        """The form, with a blank for each number of delegators."""
        return Sheet(
            tuple(
                Blank(str(number), game.labels[0], f"the action when {number} of {game.players} delegate")
                for number in range(1, game.players + 1)
            ),
            {},
        )

    def ask_for(self, game: NormalForm) -> str:
        """The request for a mediator."""
        return "Propose a mediator: for each number of players who delegate, the action it takes for each of them."

    def tell(self, game: NormalForm, design: Answer) -> str:
        """The action for each number of delegators."""
        return ", ".join(f"{design[str(number)]} if {number} delegate" for number in range(1, game.players + 1))

    def apply(self, game: NormalForm, design: Answer) -> NormalForm:
        """The game with the additional action of delegation."""
        n, delegate = game.players, len(game.labels[0])
        payoffs = np.empty((delegate + 1,) * n + (n,), dtype=object)
        for profile in product(range(delegate + 1), repeat=n):
            payoffs[profile] = game.payoffs[_acted(game, design, profile)]
        all_delegate = (delegate,) * n
        return NormalForm(
            tuple((*labels, DELEGATE) for labels in game.labels),
            payoffs,
            all_delegate if _acted(game, design, all_delegate) == cooperation(game) else None,
            game.defect,
        )

    def cooperative(self, game: NormalForm, design: Answer) -> list[Profile]:
        """All profiles in which every player cooperates, or delegates to a mediator that does."""
        good, delegate = cooperation(game), len(game.labels[0])
        if good is None:
            return []
        plays = product(*((action, delegate) for action in good))
        return [profile for profile in plays if _acted(game, design, profile) == good]


def _acted(game: NormalForm, design: Answer, profile: Profile) -> Profile:
    """The actions after the mediator has acted for all who delegate."""
    delegate = len(game.labels[0])
    delegators = profile.count(delegate)
    action = game.labels[0].index(design[str(delegators)]) if delegators else delegate
    return tuple(action if taken == delegate else taken for taken in profile)
