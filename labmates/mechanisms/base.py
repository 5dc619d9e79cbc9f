"""Mechanisms: rules around a game, as a conversation with its players.

A mechanism is a frozen model of its parameters. Its main method, `Mechanism.play`, is a generator that yields questions
to players, receives their answers, and returns the result. Its argument `then` plays the game inside, so that
mechanisms nest: a contract around a repeated game is agreed on once; a repetition around a contract has a contract in
every round. Answers may come from a model, a scripted player or a test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from labmates.games.normal_form import NormalForm, cooperation
from labmates.mechanisms.norms import Past
from labmates.mechanisms.wording import OURS, Answer, Wording

Stage = Literal["announce", "choose", "propose", "vote", "sign", "settle"]
STAGES: tuple[Stage, ...] = ("announce", "propose", "vote", "sign", "choose", "settle")
"""The stages of a conversation; ``settle`` comes after play: gifts, fines."""


@dataclass(frozen=True)
class Blank:
    """One blank of a form.

    Attributes
    ----------
    name
        Its key in the answer.
    allowed
        The range of an integer, the texts of a choice, or None for true or false.
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
        The answer used for a player without a usable one.
    total
        The required sum of its numbers; None for no requirement.
    """

    blanks: tuple[Blank, ...]
    fallback: Answer
    total: int | None = None


@dataclass(frozen=True)
class Question:
    """A question to one player.

    Attributes
    ----------
    agent, seat
        The player, and its seat in the game; both from 0.
    step
        A name unique within the match.
    round
        From 1; 0 without rounds.
    told
        The player's information beyond the rules, in sections.
    ask
        The request.
    facts
        The information as data: ``past`` (in repeated games), ``proposals``, ``design``, ``in_force``. All but `past`
        are JSON values.
    shared
        A name for a request whose answer depends only on the player and its seat, so that one answer can serve all
        matches; else empty.
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
    """One play of the game.

    Attributes
    ----------
    agents
        The agent at each seat.
    mixes
        The players' distributions, in percent.
    actions
        The actions drawn from them, as labels.
    payoffs, expected
        The payoffs, and those expected from the distributions.
    weight
        Its weight in its players' total payoff.
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
    """One negotiation: proposals and votes.

    Attributes
    ----------
    proposals
        By seat; None for a player without a proposal.
    stable
        For each proposal, whether full cooperation is a Nash equilibrium under it, and whether it is weakly dominant;
        None without a proposal.
    votes
        The seats of the approved proposals, by seat of the voter.
    winners
        The seats of the proposals that were played.
    tied
        Number of proposals with the most approvals.
    signed
        For each winner, by seat; empty without signatures.
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
    """The players and their information so far.

    Attributes
    ----------
    agents
        The agent at each seat; for a mechanism that assigns seats, all agents.
    roles
        The seat that each agent takes; in a match 0, 1 and so on.
    step
        Prefix of the names of all questions.
    seed
        All random draws derive from it and the step.
    told, facts
        By seat; see `Question`.
    weight
        The weight of plays here.
    log
        Plays and negotiations; mechanisms append to it.
    words
        Wording of the built-in mechanisms.
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
        """The same seats with further information for each player."""
        before = self.told or ((),) * len(told)
        known: Sequence[Mapping[str, Any]] = self.facts or ({},) * len(facts)
        return replace(
            self,
            told=tuple((*old, new) if new else old for old, new in zip(before, told, strict=True)),
            facts=tuple({**old, **new} for old, new in zip(known, facts, strict=True)),
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


class Mechanism(BaseModel, ABC):
    """A rule around a game; a frozen model of its parameters.

    Attributes
    ----------
    name, title
        Its identifier, and its title for people.
    summary
        The rule in a sentence or two, for people.
    encloses
        Text for players on the mechanisms inside it.
    seats_itself
        Whether it assigns all agents to seats, instead of playing one match.
    is_theorem
        Whether the cooperative payoff is that of an equilibrium under it (CoopEval, theorem 1).
    transfers
        Whether payments may carry a player's payoff beyond the range of the game's.
    burns
        Whether players can lose points after play, as by fines without a recipient.
    ignorable
        Whether players who do nothing that it asks for play the game as it is; not so under a rule that changes what
        actions pay, such as a tax.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    encloses: ClassVar[str] = ""
    seats_itself: ClassVar[bool] = False
    is_theorem: ClassVar[bool] = True
    transfers: ClassVar[bool] = True
    burns: ClassVar[bool] = False
    ignorable: ClassVar[bool] = True

    @abstractmethod
    def rules(self, game: NormalForm) -> str:
        """The description of the mechanism for all players; empty for none."""

    @abstractmethod
    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Play the game under the mechanism.

        Parameters
        ----------
        then
            Plays the game inside, with further mechanisms if any.
        """

    def check(self, game: NormalForm) -> None:
        """Check that the mechanism fits a game.

        Raises
        ------
        UsageError
            If not.
        """

    def sustains(self, game: NormalForm) -> bool | None:
        """Whether full cooperation is a subgame-perfect equilibrium in pure strategies, computed in exact numbers.

        None for mechanisms that claim the theorem, or if unknown.
        """
        return None

    def follow(self, game: NormalForm, question: Question) -> Answer | None:
        """The answer that leads to the cooperative payoff; None for that of `theorem.follow`."""
        return None


class Insufficient(Mechanism, ABC):
    """A mechanism that leaves the equilibria of the game unchanged (CoopEval, section 3: non-examples)."""

    is_theorem: ClassVar[bool] = False
    transfers: ClassVar[bool] = False

    def sustains(self, game: NormalForm) -> bool:
        """Whether full cooperation is an equilibrium of the game itself."""
        good = cooperation(game)
        return good is not None and game.is_nash(good)


def past_of(facts: Mapping[str, Any]) -> Past | None:
    """A player's knowledge of earlier rounds; None in games without repetition."""
    return facts.get("past")
