"""Mechanisms: rules around a game, as a conversation with its players.

A mechanism is a frozen model of its parameters with one method that matters, `Mechanism.play`: a generator that yields
questions to players, is sent their answers, and returns what came of it. It gets what is played under it as a function,
so that mechanisms can be put around each other: a contract around a repeated game is agreed on once, a repetition
around a contract has one agreed on in every round. Who answers is not known here: a model, a scripted player, a test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from labmates.games.normal_form import NormalForm, cooperation
from labmates.mechanisms.norms import Past
from labmates.mechanisms.wording import OURS, Wording

Stage = Literal["announce", "choose", "propose", "vote", "sign", "settle"]
STAGES: tuple[Stage, ...] = ("announce", "propose", "vote", "sign", "choose", "settle")
"""The stages of a conversation; ``settle`` comes after play: gifts, fines."""
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Blank:
    """One blank of a form.

    Attributes
    ----------
    name
        Its key in the answer.
    allowed
        The least and the most of a whole number, the texts to choose from, or None for true or false.
    """

    name: str
    allowed: range | tuple[str, ...] | None
    about: str = ""


@dataclass(frozen=True)
class Sheet:
    """The form of an answer.

    Attributes
    ----------
    fallback
        What counts as the answer of somebody who gives none that can be used.
    total
        What its numbers have to add up to; None if they need not.
    """

    blanks: tuple[Blank, ...]
    fallback: Answer
    total: int | None = None

    def fault(self, answer: Answer) -> str | None:
        """The fault of an answer that the form does not allow; None for an allowed one."""
        names = [blank.name for blank in self.blanks]
        if set(answer) != set(names):
            return f"it must answer {', '.join(names)}, not {', '.join(answer) or 'nothing'}"
        for blank in self.blanks:
            value = answer[blank.name]
            if not (isinstance(value, bool) if blank.allowed is None else value in blank.allowed):
                return f"{blank.name} can't be {value!r}{_bounds_of(blank.allowed)}"
        if self.total is not None and sum(answer.values()) != self.total:
            return f"its numbers add up to {sum(answer.values())}, not {self.total}"
        return None


def _bounds_of(allowed: range | tuple[str, ...] | None) -> str:
    return f" (from {allowed[0]} to {allowed[-1]})" if isinstance(allowed, range) else ""


@dataclass(frozen=True)
class Question:
    """A question to one player.

    Attributes
    ----------
    agent, seat
        Who is asked, and where it sits in the game; both from 0.
    step
        A name that no other question of the same match has.
    round
        From 1; 0 where there are no rounds.
    told
        What the player gets to know beside the rules, one section each.
    ask
        What is asked for.
    facts
        What is told, as data: ``past`` (where games are played again and again), ``proposals``, ``design``,
        ``in_force``. All but `past` is as JSON has it.
    shared
        A name for what is asked for, where the answer depends on nothing but who is asked and its seat, so that it may
        be asked for once for all matches; else empty.
    """

    agent: int
    seat: int
    stage: Stage
    step: str
    round: int
    told: tuple[str, ...]
    ask: str
    sheet: Sheet
    facts: Mapping[str, Any] = field(default_factory=dict)
    shared: str = ""


@dataclass(frozen=True)
class Played:
    """One time that the game was played.

    Attributes
    ----------
    agents
        Who sat where.
    mixes
        The distributions that were handed in, in percent.
    actions
        What was drawn from them, as labels.
    payoffs, expected
        What came of it, and what was to be expected of the distributions.
    weight
        What it counts in the payoff of its players.
    """

    step: str
    round: int
    agents: tuple[int, ...]
    mixes: tuple[tuple[int, ...], ...]
    actions: tuple[str, ...]
    payoffs: tuple[float, ...]
    expected: tuple[float, ...]
    weight: float


@dataclass(frozen=True)
class Negotiated:
    """One time that a design was proposed and voted on.

    Attributes
    ----------
    proposals
        By seat; None for a player without a proposal.
    stable
        For each proposal whether full cooperation is a Nash equilibrium under it, and whether it is weakly dominant;
        None for no proposal.
    votes
        By seat, the seats whose proposals were approved of.
    winners
        The seats of the proposals that were played.
    tied
        How many proposals had the most approvals.
    signed
        For each winner, by seat; empty where nobody has to sign.
    """

    step: str
    round: int
    agents: tuple[int, ...]
    proposals: tuple[Answer | None, ...]
    stable: tuple[tuple[bool, bool] | None, ...]
    votes: tuple[tuple[int, ...], ...]
    winners: tuple[int, ...]
    tied: int
    signed: tuple[tuple[bool, ...], ...] = ()


@dataclass(frozen=True)
class Seats:
    """The players, and their information so far.

    Attributes
    ----------
    agents
        Who sits at each seat; for a mechanism that seats them itself, everybody.
    roles
        The seat that each is to have; those of a match are 0, 1 and so on.
    step
        Beginning of the names of all questions.
    seed
        Whatever is drawn at random derives from it and the step.
    told, facts
        By seat; see `Question`.
    weight
        What counts of what is played here.
    log
        What has happened; mechanisms add to it.
    words
        How the built-in mechanisms tell it.
    """

    agents: tuple[int, ...]
    roles: tuple[int, ...]
    seed: int
    step: str = ""
    round: int = 0
    told: tuple[tuple[str, ...], ...] = ()
    facts: tuple[Mapping[str, Any], ...] = ()
    weight: float = 1.0
    log: list[Played | Negotiated] = field(default_factory=list)
    words: Wording = OURS

    def telling(self, told: Sequence[str], facts: Sequence[Mapping[str, Any]], **changes: Any) -> Seats:
        """The same seats, with further information for each player."""
        before = self.told or ((),) * len(told)
        known: Sequence[Mapping[str, Any]] = self.facts or ({},) * len(facts)
        return replace(
            self,
            told=tuple((*had, one) if one else had for had, one in zip(before, told, strict=True)),
            facts=tuple({**had, **one} for had, one in zip(known, facts, strict=True)),
            **changes,
        )

    def ask(self, stage: Stage, asks: Sequence[str], sheets: Sequence[Sheet], **more: Any) -> list[Question]:
        """A question to every player."""
        told = self.told or ((),) * len(self.agents)
        facts: Sequence[Mapping[str, Any]] = self.facts or ({},) * len(self.agents)
        return [
            Question(
                agent=agent,
                seat=self.roles[place],
                stage=stage,
                step=f"{self.step}{stage}",
                round=self.round,
                told=told[place],
                ask=asks[place],
                sheet=sheets[place],
                facts=facts[place],
                **more,
            )
            for place, agent in enumerate(self.agents)
        ]


@dataclass(frozen=True)
class Result:
    """The outcome of play, by place in `Seats.agents`: payoffs, expected payoffs, and actions."""

    payoffs: tuple[float, ...]
    expected: tuple[float, ...]
    deeds: tuple[str, ...]


Play = Generator[list[Question], list[Answer], Result]
Then = Callable[[NormalForm, Seats], Play]


@dataclass(frozen=True)
class Calls:
    """Numbers of questions: in each match, and once for each model and seat."""

    per_match: int
    shared: int = 0


class Mechanism(BaseModel, ABC):
    """A rule around a game; a frozen model of its parameters.

    Attributes
    ----------
    name, title
        What it is called, by a computer and by people.
    summary
        The rule in a sentence or two, for people.
    encloses
        How players are told that what follows is played under it, where another mechanism stands inside.
    seats_itself
        Whether it gets everybody together and says who plays with whom, instead of one match.
    is_theorem
        Whether the cooperative payoff is that of an equilibrium under it (CoopEval, theorem 1).
    burns
        Whether points may be lost by what players do after play, as by fines that nobody receives.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    encloses: ClassVar[str] = ""
    seats_itself: ClassVar[bool] = False
    is_theorem: ClassVar[bool] = True
    burns: ClassVar[bool] = False

    @abstractmethod
    def rules(self, game: NormalForm) -> str:
        """The description of the mechanism for all players; empty for none."""

    @abstractmethod
    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Let the game be played under the mechanism.

        Parameters
        ----------
        then
            What is played under it: the game itself, or another mechanism around it.
        """

    @abstractmethod
    def calls(self, game: NormalForm, inner: Calls) -> Calls:
        """The number of questions of `play`, if the layer below asks `inner`."""

    def check(self, game: NormalForm) -> None:
        """Check that the mechanism can be put around a game.

        Raises
        ------
        UsageError
            If it can't.
        """

    def sustains(self, game: NormalForm) -> bool | None:
        """Whether full cooperation is a subgame-perfect equilibrium in pure strategies, computed in exact numbers.

        None for mechanisms that claim the theorem, or of which it is not known.
        """
        return None

    def follow(self, game: NormalForm, question: Question) -> Answer | None:
        """The answers that lead to the cooperative payoff; None for those of `theorem.follow`."""
        return None


class Insufficient(Mechanism, ABC):
    """A mechanism that leaves the equilibria of the game as they are (CoopEval, section 3: non-examples)."""

    is_theorem: ClassVar[bool] = False

    def sustains(self, game: NormalForm) -> bool:
        """Whether full cooperation is an equilibrium of the game itself."""
        good = cooperation(game)
        return good is not None and game.is_nash(good)


def past_of(facts: Mapping[str, Any]) -> Past | None:
    """A player's knowledge of earlier rounds; None where games are not repeated."""
    past: Past | None = facts.get("past")
    return past
