"""Repetition: the same players play repeatedly and remember (direct reciprocity; CoopEval, section 3)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Mechanism, Play, Result, Seats, Then
from labmates.mechanisms.norms import Deed, Past
from labmates.mechanisms.play import average
from labmates.mechanisms.wording import player_name


def discount_weights(discount: float, rounds: int) -> NDArray[np.float64]:
    """Weights of rounds if another one follows with probability `discount`; their sum is 1.

    The last round represents all later ones: its weight is ``discount ** (rounds - 1)``.
    """
    weights = (1.0 - discount) * discount ** np.arange(rounds, dtype=float)
    weights[-1] = discount ** (rounds - 1)
    return weights


class Repeated(Mechanism):
    """Base of repetition and reputation: rounds, and memory of them."""

    encloses: ClassVar[str] = "Everything below happens again in every round."
    transfers: ClassVar[bool] = False

    rounds: int = Field(15, ge=1, le=200, description="Rounds played; the last represents all later ones.")
    continuation: float = Field(0.8, ge=0, lt=1, description="Stated probability of another round.")
    memory: int = Field(3, ge=1, le=200, description="Number of last rounds shown.")

    def weights(self) -> tuple[float, ...]:
        """Weights of the rounds."""
        return tuple(map(float, discount_weights(self.continuation, self.rounds)))

    @property
    def percent(self) -> str:
        """The probability of another round, as text."""
        return f"{self.continuation * 100:g} %"


class Repetition(Repeated):
    """The same players meet in every round."""

    name: ClassVar[str] = "repetition"
    title: ClassVar[str] = "Repetition"
    summary: ClassVar[str] = "The same players play round after round and see what all did in the last ones."

    def rules(self, game: NormalForm) -> str:
        """The rule on further rounds."""
        return (
            f"The same players play the game round after round. After each round, another one follows with a "
            f"probability of {self.percent}. You are shown what everybody chose in at most the last {self.memory} "
            f"rounds. Your points from all rounds are added up."
        )

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Play the rounds."""
        past: list[tuple[str, ...]] = []
        results: list[Result] = []
        weights = self.weights()
        for number in range(1, self.rounds + 1):
            known = past[::-1][: self.memory]
            told = [seats.words.rounds(game, known, seat, number - 1) for seat in seats.roles]
            facts = [{"past": _past(known, seat)} for seat in seats.roles]
            now = seats.telling(
                told,
                facts,
                step=f"{seats.step}{number}/",
                round=number,
                weight=seats.weight * weights[number - 1],
            )
            result = yield from then(game, now)
            past.append(result.deeds)
            results.append(result)
        return average(results, weights)


def _past(known: list[tuple[str, ...]], me: int) -> Past:
    rounds = tuple(
        (tuple(Deed(player_name(seat, me), seat, deed) for seat, deed in enumerate(deeds)),) for deeds in known
    )
    others = tuple(player_name(seat, me) for seat in range(len(known[0]) if known else 0) if seat != me)
    return Past(player_name(me, me), others, rounds)
