"""Payoff tables: games in normal form as their authors write them, in YAML.

For instance::

    name: prisoners
    players: 2
    actions: [C, D]
    payoffs: {C C: [2, 2], C D: [0, 3], D C: [3, 0], D D: [1, 1]}
    cooperate: C C
    defect: D D

``actions`` may also be a list for each player. ``cooperate`` and ``defect`` are the profiles with normalised payoffs 1
and 0; a game without a cooperative profile omits them. Instead of ``payoffs`` a table may have a ``formula``, for
instance ``formula: {kind: pool, factor: 3/2}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from labmates.errors import UsageError, explaining, telling
from labmates.games.base import Exact
from labmates.games.normal_form import NormalForm, Profile, check_size, neutral_labels
from labmates.util.bounded_yaml import read_source


class Pool(BaseModel):
    """A pool that is multiplied and shared: the first action contributes, the second keeps `kept` points."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pool"] = "pool"
    factor: Exact = Field(gt=0, description="Multiplier of all contributions before they are shared.")
    kept: Exact = Field(Fraction(1), description="Points that a player keeps by giving nothing.")

    def payoffs(self, actions: Sequence[str], profile: Sequence[str]) -> tuple[Fraction, ...]:
        """Payoffs for the actions of a profile."""
        share = self.factor * profile.count(actions[0]) / len(profile)
        return tuple(share if action == actions[0] else share + self.kept for action in profile)


class Claims(BaseModel):
    """Two claims: both get the lower one, and the higher claimant pays the lower one a bonus."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["claims"] = "claims"
    bonus: Exact = Field(description="Transfer from the higher claimant to the lower one.")

    def payoffs(self, actions: Sequence[str], profile: Sequence[str]) -> tuple[Fraction, ...]:
        """Payoffs for the claims of a profile."""
        claims = [Fraction(action) for action in profile]
        return tuple(min(claims) + self.bonus * ((own < max(claims)) - (own > min(claims))) for own in claims)


Formula = Annotated[Pool | Claims, Field(discriminator="kind")]


class PayoffTable(BaseModel):
    """A game in normal form; a frozen model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Name of the game: letters from a to z, digits and hyphens, at most 64.")
    title: str = Field("", description="Title for people.")
    summary: str = Field("", description="Description for people; players never see it.")
    source: str = Field("", description="Source.")
    players: int = Field(2, ge=2, le=8, description="Number of players.")
    actions: tuple[tuple[str, ...], ...] = Field(description="Actions of each player, or one list for all.")
    words: tuple[str, ...] = Field(
        (),
        description="Meaningful words for the actions, if all players have the same; by default their names. Players "
        "read them only in an ablation.",
    )
    payoffs: dict[str, tuple[Exact, ...]] = Field(
        default_factory=dict,
        description="Payoff of each player for each combination of actions, in the order of players.",
    )
    formula: Formula | None = Field(
        None,
        description="Formula in place of payoffs: pool (factor, kept) or claims (bonus).",
    )
    cooperate: str | None = Field(None, description="The combination in which all cooperate.")
    defect: str | None = Field(None, description="The combination in which all defect.")

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
            raise ValueError("a name has letters from a to z, digits and hyphens, at most 64, and no hyphen in front")
        return name

    @model_validator(mode="before")
    @classmethod
    def _same_actions_for_all(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        actions = data.get("actions")
        if isinstance(actions, Sequence) and not isinstance(actions, str):
            if not any(isinstance(own, (list, tuple)) for own in actions):
                players = data.get("players", 2)
                actions = [actions] * players if isinstance(players, int) and 0 < players <= 8 else [actions]
            texts = [[_text(name) for name in own] if isinstance(own, (list, tuple)) else own for own in actions]
            return {**data, "actions": texts}
        return data

    @field_validator("payoffs", mode="before")
    @classmethod
    def _keys_are_texts(cls, value: Any) -> Any:
        return {_text(key): numbers for key, numbers in value.items()} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _is_whole(self) -> PayoffTable:
        if len(self.actions) != self.players:
            raise ValueError(f"actions are given for {len(self.actions)} players, but the game has {self.players}")
        for own in self.actions:
            if len(set(own)) < len(own):
                raise ValueError(f"an action is repeated: {', '.join(own)}")
        check_size([len(own) for own in self.actions])
        if self.words and {len(self.words)} != {len(own) for own in self.actions}:
            raise ValueError(f"{len(self.words)} words are given for {len(self.actions[0])} actions")
        wanted = {" ".join(profile) for profile in product(*self.actions)}
        if self.formula is not None:
            self._follow(self.formula)
        given = [" ".join(_parts(key)) for key in self.payoffs]
        if missing := sorted(wanted - set(given)):
            raise ValueError(f"payoffs are missing for: {', '.join(missing[:5])}")
        if unknown := sorted(set(given) - wanted):
            raise ValueError(f"payoffs are given for unknown combinations: {', '.join(unknown[:5])}")
        if len(given) > len(wanted):
            raise ValueError("the payoffs of a combination are repeated")
        for key, numbers in self.payoffs.items():
            if len(numbers) != self.players:
                raise ValueError(f"'{key}' needs {self.players} payoffs, not {len(numbers)}")
        if (self.cooperate is None) != (self.defect is None):
            raise ValueError("give both 'cooperate' and 'defect', or neither")
        for named in (self.cooperate, self.defect):
            if named is not None and " ".join(_parts(named)) not in wanted:
                raise ValueError(f"'{named}' is not a combination of the players' actions")
        return self

    def _follow(self, formula: Formula) -> None:
        """Fill in the payoffs of a formula, or check that given payoffs agree with it."""
        if len(set(self.actions)) > 1 or (formula.kind == "pool" and len(self.actions[0]) != 2):
            raise ValueError("a formula needs the same actions for all players, and a pool two actions")
        if formula.kind == "claims" and (self.players != 2 or not all(map(_is_number, self.actions[0]))):
            raise ValueError("claims need two players, and numbers as actions")
        by_formula = {
            " ".join(profile): formula.payoffs(self.actions[0], profile) for profile in product(*self.actions)
        }
        given = {" ".join(_parts(key)): numbers for key, numbers in self.payoffs.items()}
        if given and given != by_formula:
            raise ValueError("payoffs and formula disagree; remove one of them")
        object.__setattr__(self, "payoffs", by_formula)

    def meanings(self) -> dict[str, str]:
        """Meaningful words for the actions, by neutral label.

        Raises `UsageError` if players have different actions, or the words are equal to numbers of players.
        """
        words = self.words or self.actions[0]
        if not self.words and len(set(self.actions)) > 1:
            raise UsageError(f"'{self.name}' has different actions for each player; give it 'words'")
        if {str(number) for number in range(1, self.players + 1)} & set(words):
            raise UsageError(f"the actions of '{self.name}' are numbers, which denote players; give it 'words'")
        return dict(zip(neutral_labels(len(words)), words, strict=True))

    def game(self) -> NormalForm:
        """The game, with neutral labels for its actions."""
        return _game(self.model_dump_json())

    def _make(self) -> NormalForm:
        import numpy as np

        shape = tuple(len(own) for own in self.actions)
        payoffs = np.empty((*shape, self.players), dtype=object)
        for key, numbers in self.payoffs.items():
            for player, number in enumerate(numbers):
                payoffs[(*self._profile(key), player)] = number
        both = (None if key is None else self._profile(key) for key in (self.cooperate, self.defect))
        return NormalForm(tuple(map(neutral_labels, shape)), payoffs, *both)

    def _profile(self, key: str) -> Profile:
        return tuple(own.index(name) for own, name in zip(self.actions, _parts(key), strict=True))


@lru_cache(maxsize=64)
def _game(table: str) -> NormalForm:
    return PayoffTable.model_validate_json(table)._make()


def read_table(text: str, where: str) -> PayoffTable:
    """The payoff table in a YAML text, called `where` in errors; a `UsageError` if it is invalid."""
    source = read_source(text, where, "payoff table", "name: my-game")
    with explaining(head=f"{where}: invalid payoff table:\n"):
        return PayoffTable.model_validate(source.data)


def load_table(path: Path) -> PayoffTable:
    """The payoff table in a YAML file; a `UsageError` if the file is unreadable or invalid."""
    with telling(f"the payoff table can't be read: {path}"):
        return read_table(path.read_text(encoding="utf-8"), str(path))


def _parts(key: str) -> list[str]:
    return key.replace(",", " ").split()


def _is_number(text: str) -> bool:
    try:
        Fraction(text)
    except ValueError:
        return False
    return True


def _text(name: object) -> str:
    if isinstance(name, bool):
        raise ValueError("YAML reads this action as true or false; put it in quotes")
    return str(name)
