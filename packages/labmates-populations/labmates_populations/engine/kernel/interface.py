"""The interface of a strategy: actions, the description of its game, its history, under the published names.

A strategy's class is instantiated with a description of its game, once per player and game. The instance is called in
every round with the player's history, and returns `C` or `D`.

There are two forms. The current one is ``strategy(history)``, in the common pool ``strategy(history, stock)``, with a
count of cooperating opponents per round. The paper's form (January) is ``strategy(state, history)``; its history is
None in round 0, and has a column per opponent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Action(Enum):
    """A player's action in a round. It is not a number, so comparing it with a numpy value gives False."""

    D = 0
    C = 1

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        return self is Action.C

    def __int__(self) -> int:
        return int(self is Action.C)

    def __add__(self, other: Any) -> Any:
        return int(self) + (int(other) if isinstance(other, Action) else other)

    __radd__ = __add__

    def flip(self) -> Action:
        """The other action."""
        return Action.D if self is Action.C else Action.C


C, D = Action.C, Action.D


class BaseStrategy:
    """Base class of strategies."""

    def __init__(self, game_description: GameDescription) -> None:
        self.game_description = game_description


@dataclass(frozen=True)
class GameDescription:
    """The parameters of a game.

    Attributes
    ----------
    own_source, opponent_sources
        The code of the player's class and of each opponent's as text, with the class name ``Strategy``; empty in games
        without access to code.
    """

    n_players: int
    n_rounds: int
    own_source: str = field(default="", kw_only=True, repr=False)
    opponent_sources: tuple[str, ...] = field(default=(), kw_only=True, repr=False)


@dataclass(frozen=True)
class PublicGoodsDescription(GameDescription):
    """Public goods: `k` is the multiplier of contributions."""

    k: float


@dataclass(frozen=True)
class CollectiveRiskDescription(GameDescription):
    """Collective risk: `m` cooperators bring the benefit `k`."""

    m: int
    k: float


@dataclass(frozen=True)
class CommonPoolDescription(GameDescription):
    """The common pool: `capacity` is the greatest stock."""

    capacity: int


@dataclass(frozen=True)
class ByCountDescription(GameDescription):
    """Payoffs by count: of a cooperator among 1, 2, … cooperators, and of a defector with 0, 1, … cooperators."""

    cooperate: tuple[float, ...]
    defect: tuple[float, ...]


@dataclass(frozen=True)
class ByActionDescription(GameDescription):
    """Payoffs by action: names of the actions, and for each its payoff by composition of the others."""

    actions: tuple[str, ...]
    table: tuple[tuple[float, ...], ...]


DESCRIPTIONS: dict[str, type[GameDescription]] = {
    "public-goods": PublicGoodsDescription,
    "collective-risk": CollectiveRiskDescription,
    "common-pool": CommonPoolDescription,
    "by-count": ByCountDescription,
    "by-action": ByActionDescription,
}
"""The class of the description of each game, by the game's name."""


class GameState:
    """The current round (the paper's form)."""

    __slots__ = ("round_number",)

    def __init__(self, round_number: int) -> None:
        self.round_number = round_number


class CommonPoolState(GameState):
    """The current round and stock (the paper's form)."""

    __slots__ = ("current_stock",)

    def __init__(self, round_number: int, current_stock: float) -> None:
        self.round_number = round_number
        self.current_stock = current_stock


@dataclass(slots=True, eq=False, repr=False)
class Record:
    """The observations of one player: read-only arrays over all rounds of a game.

    They give access only to this player's data: their memory belongs to no Python object.
    """

    actions: Bools
    payoffs: Floats
    opponents: Counts
    opponent_actions: Any = None
    opponent_payoffs: Any = None


class PlayerHistory:
    """The observations of a player in `round_number` rounds: the current form.

    Attributes
    ----------
    my_actions
        True for cooperation; shape ``(round_number,)``.
    my_payoffs
        The player's payoffs.
    opponent_cooperators
        Number of other cooperators.
    """

    __slots__ = ("_record", "my_actions", "my_payoffs", "opponent_cooperators", "round_number")
    my_actions: Bools
    my_payoffs: Floats
    opponent_cooperators: Counts
    round_number: int

    def __init__(self, my_actions: Bools, my_payoffs: Floats, opponent_cooperators: Counts) -> None:
        for one in (my_actions, my_payoffs, opponent_cooperators):
            one.flags.writeable = False  # as in the published program
        self.my_actions = my_actions
        self.my_payoffs = my_payoffs
        self.opponent_cooperators = opponent_cooperators
        self.round_number = len(my_actions)

    def __getattr__(self, name: str) -> Any:
        if name == "my_actions":
            self.my_actions = self._record.actions[: self.round_number]
            return self.my_actions
        if name == "my_payoffs":
            self.my_payoffs = self._record.payoffs[: self.round_number]
            return self.my_payoffs
        if name == "opponent_cooperators":
            self.opponent_cooperators = self._record.opponents[: self.round_number]
            return self.opponent_cooperators
        raise AttributeError(f"a history has no '{name}'")


class SeenHistory(PlayerHistory):
    """A history with lazily created arrays."""

    __slots__ = ()

    def __init__(self, record: Record, t: int) -> None:
        self._record = record
        self.round_number = t


class ActionHistory:
    """The observations of a player in `round_number` rounds of a game of named actions, which are numbered from 0.

    Attributes
    ----------
    my_actions
        The player's actions; shape ``(round_number,)``.
    my_payoffs
        The player's payoffs.
    opponent_counts
        Number of others with each action; shape ``(round_number, actions)``.
    """

    __slots__ = ("my_actions", "my_payoffs", "opponent_counts", "round_number")

    def __init__(self, record: Record, t: int) -> None:
        self.my_actions = record.actions[:t]
        self.my_payoffs = record.payoffs[:t]
        self.opponent_counts = record.opponents[:t]
        self.round_number = t


class PaperHistory:
    """The observations of a player: the paper's form, with a column per opponent; None in round 0."""

    __slots__ = ("my_actions", "my_payoffs", "opponent_actions", "opponent_payoffs")

    def __init__(
        self, my_actions: Bools, my_payoffs: Floats, opponent_actions: Bools, opponent_payoffs: Floats
    ) -> None:
        for one in (my_actions, my_payoffs, opponent_actions, opponent_payoffs):
            one.flags.writeable = False
        self.my_actions = my_actions
        self.my_payoffs = my_payoffs
        self.opponent_actions = opponent_actions
        self.opponent_payoffs = opponent_payoffs

    @property
    def round_number(self) -> int:
        """Number of rounds seen."""
        return len(self.my_actions)


class SeenPaperHistory(PaperHistory):
    """A history of read-only arrays."""

    __slots__ = ()

    def __init__(self, record: Record, t: int) -> None:
        self.my_actions = record.actions[:t]
        self.my_payoffs = record.payoffs[:t]
        self.opponent_actions = record.opponent_actions[:t]
        self.opponent_payoffs = record.opponent_payoffs[:t]
