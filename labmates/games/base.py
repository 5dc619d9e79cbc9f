"""Behavioural games: decisions, payoffs, and the reduction to one decision.

The rules are data, the fields of a frozen model. Payoffs are computed for any number of plays at once, and exactly with
the same formula if decisions are fractions.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from string import Template
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

if TYPE_CHECKING:
    from numpy.typing import NDArray

Decision = tuple[int, ...]
"""One player's decision: a number for each quantity, in their order."""
Array: TypeAlias = "NDArray[Any]"


# Python would compute every digit of a number such as 1e1000000000.
_NUMBER = re.compile(r"[\d.+/_ -]{1,400}(e[+-]?\d{1,2})?", re.IGNORECASE)
_MOST, _FINEST = 10**12, 10**100


def _exact(value: object) -> Fraction:
    text = str(value).strip()
    try:
        number = Fraction(text) if _NUMBER.fullmatch(text) else None
    except (ValueError, ZeroDivisionError):
        number = None
    if number is None or abs(number) > _MOST or number.denominator > _FINEST:
        raise ValueError(f"must be a number of at most {_MOST:.0e}, for instance 1.5 or 3/2")
    return number


Framing = Literal["standard", "alternate"]
"""The presentation of the rules: a numbered list or prose."""

Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(str)]
"""An exact number, given as a number or as text, for instance 1.5 or 3/2."""


@dataclass(frozen=True)
class Quantity:
    """A whole number that a player decides on.

    Attributes
    ----------
    name
        Its key in a decision's JSON.
    low, high
        The bounds, inclusive.
    about
        A description in a few words, for players.
    """

    name: str
    low: int
    high: int
    about: str


@dataclass(frozen=True)
class People:
    """Human behaviour in experiments with a game.

    Attributes
    ----------
    about
        The finding in words, to follow "people".
    source
        The experiments.
    metric
        The metric that `low` and `high` refer to; empty if no metric corresponds.
    low, high
        The reported range of means.
    """

    about: str
    source: str
    metric: str = ""
    low: float | None = None
    high: float | None = None


class Game(BaseModel, ABC):
    """A repeated game for groups of equal size; a frozen model of its rules.

    Decisions are arrays of shape ``(..., groups, group_size, quantities)``, payoffs of shape ``(..., groups,
    group_size)``. Groups are interchangeable.

    Attributes
    ----------
    name, title
        Its identifier, and its title for people.
    summary
        The rules in a sentence or two, for people.
    formal, prose
        The rules for players, as a list and as running text; ``$NAME`` is a placeholder for a rule's value (`figures`),
        for further text (`wording`), as ``$players`` for the number of players in all groups, or as ``$length`` for
        the number of rounds with its noun.
    remarks
        Remarks of the paper's prompts beside the rules; used only in the paper's wording.
    primary
        Name of the quantity whose mean over players and rounds is the game's primary metric.
    rest
        Name of the quantity that gets what the others leave of `total`; players are not asked for it. Empty without
        a total.
    span
        ``in all rounds together`` if a strategy of the reduced game covers all rounds; empty if it covers one.
    source
        Where the game is from.
    people
        Human behaviour, as reported in the cooperative-profiles paper (section 3.1).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    formal: ClassVar[tuple[str, ...]]
    prose: ClassVar[str]
    remarks: ClassVar[tuple[str, ...]] = ()
    primary: ClassVar[str]
    rest: ClassVar[str] = ""
    span: ClassVar[str] = ""
    source: ClassVar[str] = ""
    people: ClassVar[tuple[People, ...]] = ()

    group_size: int = Field(5, ge=2, le=100, description="Players in a group.")
    groups: int = Field(2, ge=1, le=20, description="Groups, all of the same size.")
    rounds: int = Field(3, ge=1, le=200, description="Rounds of decisions.")

    @property
    def players(self) -> int:
        """Number of players in all groups together."""
        return self.group_size * self.groups

    @property
    @abstractmethod
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities that a player decides on in a round."""

    @property
    def total(self) -> int | None:
        """The sum of a decision's quantities, one of them the `rest`; None if they are independent."""
        return None

    @abstractmethod
    def payoffs(self, decisions: Array) -> Array:
        """The payoff of each player in a round, before sanctions and before a possible loss at the end."""

    @property
    def asked(self) -> tuple[Quantity, ...]:
        """The quantities that players are asked for."""
        return tuple(quantity for quantity in self.quantities if quantity.name != self.rest)

    def completed(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """A decision by quantity, in their order, from the asked numbers."""
        left = 0 if self.total is None else self.total - sum(numbers.values())
        return {quantity.name: numbers.get(quantity.name, left) for quantity in self.quantities}

    @property
    @abstractmethod
    def default_decision(self) -> Decision:
        """The fallback for a player without a usable decision: the secure play of a round."""

    @property
    def sanction_limit(self) -> int:
        """Maximum number of tokens that a player may spend on sanctions in a round; 0 without a sanction stage."""
        return 0

    def sanctioned(self, payoffs: Array, tokens: Array) -> Array:
        """The payoffs of a round after sanctions.

        Parameters
        ----------
        tokens
            Shape ``(..., groups, group_size, group_size)``: the tokens that each player (last but one axis) spends on
            each member (last axis) of its group.
        """
        return payoffs

    def public(self, history: Array) -> tuple[str, ...]:
        """The facts of the newest round for all players, beyond the decisions of their own group.

        Parameters
        ----------
        history
            The decisions of all rounds so far, shape ``(rounds, groups, group_size, quantities)``.
        """
        return ()

    def group_facts(self, decisions: Array, group: int) -> tuple[str, ...]:
        """The facts of a round's `decisions`, shape ``(groups, ...)``, for the members of a group."""
        return ()

    def notes(self, history: Array) -> dict[str, float]:
        """Further records of the newest round of a history, by name."""
        return {}

    def keeps(self, history: Array) -> Fraction:
        """The probability that players keep their payoffs of all rounds at the end."""
        return Fraction(1)

    def cooperation(self, history: Array) -> float | None:
        """Cooperation in all rounds, from what happened: 0 at the equilibrium, 1 at the social optimum.

        None, the default, if it is the position of the mean level between both.
        """
        return None

    def doubts(self) -> tuple[str, ...]:
        """Reasons why these rules make a degenerate game, beyond those that follow from payoffs."""
        return ()

    def outcome(self, history: Array) -> dict[str, float]:
        """Game-specific outcomes of all rounds, as metrics by name."""
        return {}

    def status(self, history: Array) -> tuple[str, ...]:
        """Further lines on the state of the game before a decision, in the paper's wording only.

        Parameters
        ----------
        history
            As in `public`; without rounds before the first decision.
        """
        return ()

    def rules(self, framing: Framing, *, remarks: bool = False) -> str:
        """The rules as text for players, optionally with remarks."""
        added = self.remarks if remarks else ()
        if framing == "alternate":
            return self._filled(" ".join([self.prose, *added]))
        return "\n".join(f"{number}. {self._filled(rule)}" for number, rule in enumerate([*self.formal, *added], 1))

    def figures(self) -> dict[str, str]:
        """The value of every rule as text, by its name."""
        return {name: _figure(getattr(self, name)) for name in type(self).model_fields}

    def wording(self) -> dict[str, str]:
        """Texts for further placeholders in the rules, by placeholder."""
        return {}

    def payoff_fact(self, payoff: float, so_far: float) -> str:
        """The result of a round, as text for a player.

        Parameters
        ----------
        payoff, so_far
            Of this round, after sanctions, and the sum of all rounds so far.
        """
        after = " after sanctions" if self.sanction_limit else ""
        return f"your payoff in this round{after}: {in_figures(payoff)}; in all rounds so far: {in_figures(so_far)}"

    def _filled(self, text: str) -> str:
        length = counted(self.rounds, "round")
        return Template(text).substitute(self.figures(), players=self.players, length=length, **self.wording())

    def levels(self, decisions: Array) -> Array:
        """The primary quantity of each decision."""
        return decisions[..., self._primary_place]

    def decisions(self) -> Iterator[Decision]:
        """Every decision that a player can make, in order."""
        yield from _within(self.quantities, self.total)

    def strategies(self) -> Iterable[Decision]:
        """The strategies of the game reduced to one decision; by default the decisions of a round."""
        return self.decisions()

    def decision_in(self, strategy: Decision, round_: int) -> Decision:
        """The decision in a round, counted from 0, under a strategy of the reduced game."""
        return strategy

    def expected(self, profile: Array) -> Array:
        """Each player's expected payoff in the reduced game under a profile of strategies."""
        return self.payoffs(profile)

    def level_of(self, strategy: Sequence[int | Fraction]) -> Fraction:
        """The primary metric of a player with a given strategy."""
        return Fraction(strategy[self._primary_place])

    def candidates(self) -> Iterable[Array]:
        """Profiles that include one with the greatest welfare.

        By default the uniform profiles; override this if a profile of different strategies can be better than all of
        them.
        """
        return map(self.uniform, self.strategies())

    def uniform(self, strategy: Sequence[int | Fraction]) -> Array:
        """The profile in which all players use one strategy, in exact numbers."""
        import numpy as np

        profile = np.empty((self.groups, self.group_size, len(strategy)), dtype=object)
        for place, value in enumerate(strategy):
            profile[..., place] = Fraction(value)
        return profile

    @property
    def _primary_place(self) -> int:
        return [quantity.name for quantity in self.quantities].index(self.primary)


def balanced(total: int, players: int) -> list[int]:
    """Whole numbers that add up to `total` and differ by at most one."""
    least, more = divmod(total, players)
    return [least + 1] * more + [least] * (players - more)


def in_figures(value: float) -> str:
    """A payoff as text for players."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def counted(number: object, noun: str) -> str:
    """A number with its noun, in the singular or the plural."""
    return f"{number} {noun}{'' if str(number) in ('1', '-1') else 's'}"


def _figure(value: object) -> str:
    """A rule's value as text: exact numbers as decimals where these are short."""
    if isinstance(value, Fraction) and round(value, 3) == value:
        return f"{float(value):g}"
    return str(value)


def _within(quantities: Sequence[Quantity], total: int | None) -> Iterator[Decision]:
    if not quantities:
        if total in (None, 0):
            yield ()
        return
    first, *rest = quantities
    most = first.high if total is None else min(first.high, total)
    for value in range(first.low, most + 1):
        for others in _within(rest, None if total is None else total - value):
            yield (value, *others)
