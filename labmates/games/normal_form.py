"""Games in normal form: all players choose one action at the same time, and a table has the payoffs.

Payoffs are exact fractions, so that equilibria are exact; expected payoffs are floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Profile = tuple[int, ...]
"""An action of every player, by its index among the player's actions."""

MOST_PROFILES = 10_000


@dataclass(frozen=True, eq=False)
class NormalForm:
    """A game in normal form."""

    labels: tuple[tuple[str, ...], ...]  # names of each player's actions, neutral about their meaning
    payoffs: NDArray[Any]  # fractions, shape ``(actions of player 1, ..., actions of player n, n)``
    # The profiles of full cooperation and of full defection, if defined.
    cooperate: Profile | None = None
    defect: Profile | None = None

    @property
    def players(self) -> int:
        """Number of players."""
        return len(self.labels)

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """The payoffs as floats."""
        return self.payoffs.astype(float)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the game is the same for every player."""
        if len(set(self.labels)) > 1:
            return False
        for other in range(1, self.players):
            order = list(range(self.players))
            order[0], order[other] = other, 0
            if (self.payoffs.transpose(*order, self.players)[..., order] != self.payoffs).any():
                return False
        return True

    def profiles(self) -> Iterator[Profile]:
        """Every profile in order."""
        return product(*(range(len(labels)) for labels in self.labels))

    def expected(self, mixes: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """The expected payoff of each player when each draws its action from a distribution."""
        import numpy as np

        payoffs = self.table
        for mix in mixes:
            payoffs = np.tensordot(np.asarray(mix, dtype=float), payoffs, axes=(0, 0))
        return np.asarray(payoffs)

    def is_nash(self, profile: Profile, among: Sequence[int] | None = None) -> bool:
        """Whether no unilateral deviation gains; only players in `among` may deviate, by default all."""
        return all(
            self.payoffs[(*_with(profile, player, other), player)] <= self.payoffs[(*profile, player)]
            for player in (range(self.players) if among is None else among)
            for other in range(len(self.labels[player]))
        )

    def is_weakly_dominant(self, player: int, action: int) -> bool:
        """Whether an action weakly dominates all other actions of the player."""
        import numpy as np

        payoffs = np.moveaxis(self.payoffs[..., player], player, 0)
        gains = [payoffs[action] - payoffs[other] for other in range(len(payoffs)) if other != action]
        return all((gain >= 0).all() and (gain > 0).any() for gain in gains)

    @lru_cache(maxsize=1024)  # noqa: B019 - games are few and small
    def seen_by(self, player: int) -> NormalForm:
        """The game with one player moved to the first place."""
        order = [player, *(other for other in range(self.players) if other != player)]
        payoffs = self.payoffs.transpose(*order, self.players)[..., order]

        def seen(profile: Profile | None) -> Profile | None:
            return None if profile is None else tuple(profile[place] for place in order)

        return NormalForm(
            tuple(self.labels[place] for place in order), payoffs, seen(self.cooperate), seen(self.defect)
        )


@dataclass(frozen=True)
class Dilemma:
    """A pure equilibrium of a game and a profile that is better for all players (CoopEval, theorem 1)."""

    cooperate: Profile
    defect: Profile


@lru_cache(maxsize=1024)
def find_dilemma(game: NormalForm) -> Dilemma | None:
    """The dilemma in a game's payoffs; None if no profile is better for all than a pure equilibrium.

    Of several, the one with the greatest sum of payoffs in the cooperative profile, then the worst equilibrium.
    """
    equilibria = [profile for profile in game.profiles() if game.is_nash(profile)]
    dilemmas = [
        Dilemma(cooperate, defect)
        for cooperate in game.profiles()
        for defect in equilibria
        if (game.payoffs[cooperate] > game.payoffs[defect]).all()
    ]
    return max(
        dilemmas,
        key=lambda pair: (game.payoffs[pair.cooperate].sum(), -game.payoffs[pair.defect].sum()),
        default=None,
    )


@dataclass(frozen=True)
class Elimination:
    """The elimination of a dominated action."""

    round: int  # from 1; all actions of a round are eliminated together
    player: int
    action: int
    by: int  # the nearest dominating action, strictly dominating ones first
    strictly: bool  # whether the dominance is strict


def eliminations(game: NormalForm) -> list[Elimination]:
    """Iterated elimination of weakly or strictly dominated actions (CoopEval, section 2)."""
    left = [list(range(len(labels))) for labels in game.labels]
    gone: list[Elimination] = []
    while True:
        number = gone[-1].round + 1 if gone else 1
        now = [each for player in range(game.players) for each in _dominated(game, left, player, number)]
        if not now:
            return gone
        gone += now
        for elimination in now:
            left[elimination.player].remove(elimination.action)


def _dominated(game: NormalForm, left: Sequence[Sequence[int]], player: int, number: int) -> Iterator[Elimination]:
    """A player's dominated actions among the remaining ones."""
    import numpy as np

    payoffs = np.moveaxis(game.payoffs[np.ix_(*left)][..., player], player, 0)
    for place, action in enumerate(left[player]):
        gains = {by: payoffs[other] - payoffs[place] for other, by in enumerate(left[player]) if other != place}
        better = [by for by, gain in gains.items() if (gain >= 0).all() and (gain > 0).any()]
        if better:
            strict = [by for by in better if (gains[by] > 0).all()]
            nearest = min(strict or better, key=lambda by, action=action: abs(by - action))  # type: ignore[misc]
            yield Elimination(number, player, action, nearest, strictly=bool(strict))


def cooperation(game: NormalForm) -> Profile | None:
    """The cooperative profile of a game: the declared one, else that of its dilemma."""
    if game.cooperate is not None:
        return game.cooperate
    dilemma = find_dilemma(game)
    return None if dilemma is None else dilemma.cooperate


def prisoners_payoffs(game: NormalForm) -> tuple[int, int, int, int] | None:
    """Temptation, reward, punishment and sucker's payoff of an iterated prisoner's dilemma with integer payoffs.

    None for any other game.
    """
    dilemma = find_dilemma(game)
    if dilemma is None or not game.is_symmetric or game.payoffs.shape != (2, 2, 2):
        return None
    (good, _), (bad, _) = dilemma.cooperate, dilemma.defect
    letters = [game.payoffs[one, other, 0] for one, other in ((bad, good), (good, good), (bad, bad), (good, bad))]
    temptation, reward, punishment, sucker = letters
    is_dilemma = temptation > reward > punishment > sucker and 2 * reward > temptation + sucker
    if not is_dilemma or any(letter.denominator != 1 for letter in letters):
        return None
    return int(temptation), int(reward), int(punishment), int(sucker)


def neutral_labels(actions: int) -> tuple[str, ...]:
    """Neutral labels: A0, A1 and so on."""
    return tuple(f"A{place}" for place in range(actions))


def check_size(actions: Sequence[int]) -> None:
    """Check that a game with these numbers of actions has a playable size; a `UsageError` if not."""
    if len(actions) < 2 or min(actions) < 2:
        raise UsageError("a game needs at least two players and two actions for each")
    if prod(actions) > MOST_PROFILES:
        raise UsageError(f"a game can have at most {MOST_PROFILES:,} combinations of actions")


def _with(profile: Profile, player: int, action: int) -> Profile:
    return (*profile[:player], action, *profile[player + 1 :])
