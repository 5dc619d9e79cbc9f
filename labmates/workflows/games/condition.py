"""The condition of a behavioural game: the single declaration of its parameters."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from labmates.models.catalog import ModelRef
from labmates.workflows.play.condition import Reasoning
from labmates.workflows.play.wordings import WordedCondition

if TYPE_CHECKING:
    from labmates.games.base import Game
    from labmates.registry import Registry


class GameCondition(WordedCondition):
    """Let models play a behavioural game (cooperative-profiles paper, section 3)."""

    kind: ClassVar[str] = "game"
    material: ClassVar[frozenset[str]] = frozenset({"game", "group_size", "groups", "rounds", "rules"})

    game: str = Field(description="The game, by name (see: labmates games).")
    model: ModelRef = Field(description="The model of all players, provider:name (see: labmates models).")
    model_for: dict[str, ModelRef] = Field(
        default_factory=dict,
        description="Model of one group or player, A=MODEL or A3=MODEL; repeatable.",
    )
    group_size: int = Field(5, ge=2, le=100, description="Players in a group.")
    groups: int = Field(2, ge=1, le=20, description="Groups, all of the same size.")
    rounds: int | None = Field(
        None, ge=1, le=200, description="Rounds of decisions; by default 3, in collective-risk 10."
    )
    rules: dict[str, int | str] = Field(
        default_factory=dict,
        description="Constant of the game, NAME=VALUE (see: labmates games show); repeatable.",
    )
    framing: Literal["standard", "alternate"] = Field(
        "standard", description="Form of the rules: a numbered list, or prose."
    )
    reasoning: Reasoning = Field(
        "none",
        description="Reasoning before a decision: none, step by step (cot), or about the beliefs and plans of the "
        "others (tom).",
    )
    deliberation: bool = Field(
        False,
        description="Let the members of each group speak in turn before they decide, one to three sentences each.",
    )

    @field_validator("game")
    @classmethod
    def _known_game(cls, value: str) -> str:
        from labmates.games.registry import make_game

        make_game(value)
        return value

    @field_validator("model_for")
    @classmethod
    def _in_order(cls, value: dict[str, str]) -> dict[str, str]:
        return dict(sorted(value.items()))

    @field_validator("rounds")
    @classmethod
    def _usual_rounds(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None or "game" not in info.data:
            return value
        from labmates.games.registry import make_game

        return make_game(info.data["game"]).rounds

    @field_validator("rules")
    @classmethod
    def _all_rules(cls, value: dict[str, int | str], info: ValidationInfo) -> dict[str, int | str]:
        """Fill in every constant, so that the record is complete and equal conditions have equal keys."""
        if not info.data.keys() >= SIZES:
            return value  # a field is invalid, reported separately
        if sizes := SIZES & value.keys():
            options = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(sizes))
            raise ValueError(f"{', '.join(sorted(sizes))}: this is no rule but a parameter of the game ({options})")
        from labmates.games.registry import make_game

        sized: dict[str, Any] = {name: info.data[name] for name in SIZES - {"game"}}
        game = make_game(info.data["game"], {**value, **sized})
        return game.model_dump(mode="json", exclude=set(sized))

    def make_game(self) -> Game:
        """The game with the rules of this condition."""
        from labmates.games.registry import make_game

        return make_game(
            self.game, {**self.rules, "group_size": self.group_size, "groups": self.groups, "rounds": self.rounds}
        )

    def seats(self) -> list[tuple[str, str]]:
        """Group and name of every player, in order."""
        return [(group, f"{group}{seat + 1}") for group in group_names(self.groups) for seat in range(self.group_size)]

    def model_of(self, group: str, player: str) -> str:
        """The model of a player."""
        return self.model_for.get(player, self.model_for.get(group, self.model))

    def models(self) -> list[str]:
        """The models, each once, in the order of the players."""
        if not self.model_for:
            return [self.model]
        return list(dict.fromkeys(self.model_of(group, player) for group, player in self.seats()))

    def parts(self) -> list[tuple[Registry[Any], str]]:
        """The game."""
        from labmates.games.registry import GAMES

        return [(GAMES, self.game)]

    def doubts(self) -> list[str]:
        """Reasons why the game is degenerate with these rules."""
        from labmates.games.references import doubts

        return [f"{self.game}: {doubt}" for doubt in doubts(self.make_game())]

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags of its traces."""
        return self.game, self.model

    def check(self) -> None:
        """Check that models are known, and that groups and players with a model exist."""
        from labmates.errors import unknown_name
        from labmates.models.names import parse_model

        known = {name for seat in self.seats() for name in seat} if self.model_for else set()
        for name in self.model_for:
            if name not in known:
                raise unknown_name("group or player", name, known)
        for model in self.models():
            parse_model(model)
        self.check_structured([self.reasoning])


SIZES = {"game", "group_size", "groups", "rounds"}
"""Fields that define the game, beside its rules."""


def group_names(groups: int) -> str:
    """The names of groups, one letter each."""
    return ascii_uppercase[:groups]
