"""Stackelberg leadership: one player commits to a distribution that the others see first (CoopEval, section 3)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

from pydantic import Field

from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm, Profile, cooperation
from labmates.mechanisms.base import Mechanism, Play, Question, Seats, Then
from labmates.mechanisms.wording import Answer


class Stackelberg(Mechanism):
    """The leader chooses first in every round."""

    name: ClassVar[str] = "stackelberg"
    title: ClassVar[str] = "Stackelberg leadership"
    summary: ClassVar[str] = "One player commits to a distribution over its actions, and the others see it first."
    is_theorem: ClassVar[bool] = False

    leader: int = Field(1, ge=1, description="The player that commits.")

    def rules(self, game: NormalForm) -> str:
        """The rule on the leader."""
        return (
            f"Player {self.leader} chooses first, and its choice is binding. All other players see the distribution "
            "that it chose, and then choose."
        )

    def check(self, game: NormalForm) -> None:
        """Check that the game has this player."""
        if self.leader > game.players:
            raise UsageError(f"leader: player {self.leader} can't lead a game of {game.players} players")

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Play the game, with the leader asked first."""
        self.check(game)
        inner = then(game, seats)
        try:
            questions = next(inner)
            while True:
                questions = inner.send((yield from self._asked(questions)))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def sustains(self, game: NormalForm) -> bool:
        """Whether cooperation is the leader's best commitment and the others' equilibrium reply.

        Commitments are pure actions. After a deviation, the others' equilibrium that is worst for the leader counts.
        """
        good, leader = cooperation(game), self.leader - 1
        if good is None or good not in self._replies(game, good[leader]):
            return False
        worst = [
            min((game.payoffs[(*profile, leader)] for profile in self._replies(game, action)), default=None)
            for action in range(len(game.labels[leader]))
        ]
        return all(payoff is None or payoff <= game.payoffs[(*good, leader)] for payoff in worst)

    def _replies(self, game: NormalForm, commitment: int) -> list[Profile]:
        """The profiles with an action of the leader from which no follower gains by deviating alone."""
        leader = self.leader - 1
        choices = [
            (commitment,) if player == leader else range(len(labels)) for player, labels in enumerate(game.labels)
        ]
        others = [player for player in range(game.players) if player != leader]
        return [profile for profile in product(*choices) if game.is_nash(profile, others)]

    def _asked(self, questions: list[Question]) -> Generator[list[Question], list[Answer], list[Answer]]:
        """The answers; where actions are chosen, the leader is asked first and the others see its distribution."""
        first = [self._leads(question) for question in questions]
        if not any(first):
            return (yield questions)
        commitments = iter((yield [question for question, leads in zip(questions, first, strict=True) if leads]))
        ahead = [next(commitments) if leads else None for leads in first]
        committed = next(answer for answer in ahead if answer is not None)
        rest: Iterator[Answer] = iter(
            (yield [self._informed(question, committed) for question in questions if not self._leads(question)])
        )
        return [next(rest) if answer is None else answer for answer in ahead]

    def _leads(self, question: Question) -> bool:
        return question.stage == "choose" and question.seat == self.leader - 1

    def _informed(self, question: Question, committed: Answer) -> Question:
        shares = ", ".join(f"{action} with {share} %" for action, share in committed.items())
        text = f"## Commitment of player {self.leader}\n{shares}"
        facts: dict[str, Any] = {**question.facts, "committed": dict(committed)}
        return replace(question, told=(*question.told, text), facts=facts)
