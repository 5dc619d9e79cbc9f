"""What conditions of kinds share in which strategies written as code play. This module is light."""

from __future__ import annotations

from abc import ABC
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, FiniteFloat, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from labmates.errors import UsageError
from labmates.workflows.experiment import Condition

if TYPE_CHECKING:
    from labmates.games.repeated import RepeatedGame


class PopulationCondition(Condition, ABC):
    """What such a condition says of the game and of the strategies; base of the conditions of such kinds."""

    material: ClassVar[frozenset[str]] = frozenset({"game", "strategies", "digest", "group_size", "rounds", "rules"})

    game: Literal["public-goods", "collective-risk", "common-pool"] = Field(description="The game.")
    strategies: str = Field(
        description="The library of strategies: a folder with one for each game, or a file (see: labmates strategies)."
    )
    digest: str | None = Field(
        None, description="What the strategies' files have to be, as a digest; by default what they are."
    )
    group_size: int = Field(4, ge=2, le=4096, description="Players in a group.")
    rounds: int = Field(20, ge=1, le=1000, description="Rounds of a game.")
    rules: dict[str, FiniteFloat] = Field(
        default_factory=dict, description="Another value of one of the game's parameters (k, m, capacity), NAME=VALUE."
    )

    @model_validator(mode="after")
    def _playable(self) -> PopulationCondition:
        try:
            self.make_game()
        except UsageError as error:
            raise fault(self, "group_size" if "n_players" in str(error) else "rules", str(error)) from error
        if self.digest is None:
            from labmates.workflows.populations.engine.library import library_digest

            try:
                object.__setattr__(self, "digest", library_digest(Path(self.strategies), self.game))
            except UsageError as error:
                raise fault(self, "strategies", str(error)) from error
        return self

    def make_game(self) -> RepeatedGame:
        """Return the game.

        Raises
        ------
        UsageError
            If it can't be played so.
        """
        from labmates.games.repeated import make_repeated

        rules = {name: int(value) if value == int(value) else value for name, value in self.rules.items()}
        return make_repeated(self.game, self.group_size, self.rounds, rules)

    def models(self) -> list[str]:
        """Return no models: strategies play, which models have written before."""
        return []

    def check(self) -> None:
        """Do nothing: what a type can't say is known only when the strategies have been read."""


def fault(condition: Condition, name: str, text: str) -> ValidationError:
    """Return the error that says what is wrong with one field, when it is known only from several."""
    why = PydanticCustomError("population", "{text}", {"text": text})
    details = InitErrorDetails(type=why, loc=(name,), input=getattr(condition, name))
    return ValidationError.from_exception_data(type(condition).__name__, [details])
