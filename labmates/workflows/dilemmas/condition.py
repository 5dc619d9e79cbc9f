"""The condition of a cross-play of social dilemmas: the single declaration of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from labmates.errors import UsageError
from labmates.games.payoff_table import PayoffTable
from labmates.models.catalog import ModelRef
from labmates.workflows.play.condition import Reasoning
from labmates.workflows.play.wordings import AblatedCondition

if TYPE_CHECKING:
    from labmates.games.normal_form import NormalForm
    from labmates.mechanisms.base import Mechanism
    from labmates.registry import Registry

MOST_MATCHES = 1_000_000


class Entrant(BaseModel):
    """A model with its settings; missing settings are those of the condition."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: ModelRef
    name: str = ""
    temperature: float | None = Field(None, ge=0, le=2)
    max_output_tokens: int | None = Field(None, ge=64, le=131072)
    reasoning: Reasoning | None = None

    @property
    def shown(self) -> str:
        """Its displayed name: its name, or the model with its settings."""
        settings = self.model_dump(exclude={"model", "name"}, exclude_none=True)
        suffix = "&".join(f"{name}={value}" for name, value in settings.items())
        separator = "&" if "?" in self.model else "?"
        return self.name or (f"{self.model}{separator}{suffix}" if suffix else self.model)


def _entrant(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    model, mark, settings = value.strip().partition("?")
    pairs = [pair.partition("=") for pair in settings.split("&")] if mark else []
    if any(not equals for _, equals, _ in pairs):
        raise ValueError("settings are MODEL?NAME=VALUE&NAME=VALUE, for instance openai:gpt-5.4?temperature=0")
    fields = {name: setting for name, _, setting in pairs if name in Entrant.model_fields}
    rest = "&".join(f"{name}={setting}" for name, _, setting in pairs if name not in fields)
    return {**fields, "model": f"{model}?{rest}" if rest else model}


def _entrants(value: Any) -> Any:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        return value
    return [entrant for part in parts for entrant in (part.split(",") if isinstance(part, str) else [part])]


def _table(value: Any) -> Any:
    """The payoff table in a file; the name of a built-in game stays a name."""
    if isinstance(value, str) and value.endswith((".yaml", ".yml")):
        from labmates.games.payoff_table import load_table

        return load_table(Path(value))
    return value


class DilemmaCondition(AblatedCondition):
    """Let every combination of models play a social dilemma under a mechanism (CoopEval, section 5)."""

    kind: ClassVar[str] = "dilemma"
    material: ClassVar[frozenset[str]] = frozenset({"game", "mechanism", "terms", "entrants", "seating"})

    game: Annotated[str | PayoffTable, BeforeValidator(_table)] = Field(
        description="The game: one of ours by name (see: labmates dilemmas), or a YAML file with a payoff table."
    )
    entrants: Annotated[tuple[Annotated[Entrant, BeforeValidator(_entrant)], ...], BeforeValidator(_entrants)] = Field(
        min_length=1,
        description="The models, MODEL,MODEL or repeated; a model may appear twice, for example with different "
        "settings: MODEL?temperature=0&reasoning=none (name, reasoning and all settings of models).",
        json_schema_extra={"flags": ["--models"]},
    )
    mechanism: str = Field(
        "none",
        description="The mechanism (see: labmates mechanisms), or several nested ones, the outermost first: "
        "contract+repetition. Parameters go in brackets: reputation(order=3).",
    )
    terms: dict[str, int | float | str] = Field(
        default_factory=dict,
        description="Parameter of the mechanism, NAME=VALUE (see: labmates mechanisms show); repeatable.",
    )
    seating: Literal["all", "multisets"] = Field(
        "all", description="Play every seating of the models or, in a symmetric game, each combination once."
    )
    reasoning: Reasoning = Field(
        "cot",
        description="Reasoning before a decision: none, step by step (cot), or about the beliefs and plans of the "
        "others (tom).",
    )

    @model_validator(mode="before")
    @classmethod
    def _terms_out_of_brackets(cls, data: Any) -> Any:
        """Separate the terms of ``reputation(order=3)``, so that equal conditions have equal keys."""
        if not (isinstance(data, dict) and isinstance(data.get("mechanism"), str)):
            return data
        from labmates.mechanisms.registry import split_terms

        name, given = split_terms(data["mechanism"])
        terms = data.get("terms", {})
        return {**data, "mechanism": name, "terms": {**terms, **given}} if given and isinstance(terms, dict) else data

    @field_validator("game")
    @classmethod
    def _known_game(cls, value: str | PayoffTable) -> str | PayoffTable:
        if isinstance(value, str):
            from labmates.games.dilemmas import get_dilemma

            get_dilemma(value)
        return value

    @field_validator("mechanism")
    @classmethod
    def _known_mechanism(cls, value: str) -> str:
        from labmates.mechanisms.registry import make_mechanisms

        make_mechanisms(value)
        return value

    @field_validator("terms")
    @classmethod
    def _all_terms(cls, value: dict[str, int | float | str], info: ValidationInfo) -> dict[str, int | float | str]:
        """Fill in every parameter, so that the record is complete and equal conditions have equal keys."""
        if "mechanism" not in info.data:
            return value  # reported separately
        from labmates.mechanisms.registry import make_mechanisms

        terms: dict[str, int | float | str] = {}
        for mechanism in make_mechanisms(info.data["mechanism"], value):
            terms |= mechanism.model_dump(mode="json")
        return terms

    @property
    def table(self) -> PayoffTable:
        """The payoff table of the game."""
        if isinstance(self.game, PayoffTable):
            return self.game
        from labmates.games.dilemmas import get_dilemma

        return get_dilemma(self.game)

    def make_game(self) -> NormalForm:
        """The game."""
        return self.table.game()

    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms, the outermost first."""
        from labmates.mechanisms.registry import make_mechanisms

        return make_mechanisms(self.mechanism, self.terms)

    def parts(self) -> list[tuple[Registry[Any], str]]:
        """The game and the mechanisms."""
        from labmates.games.dilemmas import DILEMMAS
        from labmates.mechanisms.registry import MECHANISMS

        mechanisms = [(MECHANISMS, mechanism.name) for mechanism in self.mechanisms()]
        return [(DILEMMAS, self.table.name), *mechanisms]

    def names(self) -> list[str]:
        """Unique names of the entrants."""
        shown = [entrant.shown for entrant in self.entrants]
        return [
            name if shown.count(name) == 1 else f"{name} #{shown[: place + 1].count(name)}"
            for place, name in enumerate(shown)
        ]

    def seatings(self) -> list[tuple[int, ...]]:
        """The seats of each match, as indices of entrants."""
        places, players = range(len(self.entrants)), self.table.players
        if self.seating == "multisets":
            return list(combinations_with_replacement(places, players))
        return list(product(places, repeat=players))

    def models(self) -> list[str]:
        """The models, each once, in order."""
        return list(dict.fromkeys(entrant.model for entrant in self.entrants))

    def longest_reply(self, model: str) -> int:
        """The highest output limit of a model's calls, over its entrants."""
        default = super().longest_reply(model)
        return max(entrant.max_output_tokens or default for entrant in self.entrants if entrant.model == model)

    def doubts(self) -> list[str]:
        """Why reputation means little (all agents meet in every round), and metrics are missing."""
        doubts = []
        if self.mechanisms()[0].seats_itself and len(self.entrants) == 1:
            doubts.append(
                f"{self.mechanism}: one model makes a single group, so co-players never change; give several models "
                "(one model may be given several times)"
            )
        if self.table.game().cooperate is None:
            undefined = "normalised payoffs and cooperation are undefined"
            doubts.append(f"{self.table.name}: it names no plays as cooperate and defect, so {undefined}")
        return doubts

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags of its traces."""
        return self.table.name, self.mechanism

    def check(self) -> None:
        """Check that models are known, and that mechanism and seating fit the game."""
        from labmates.mechanisms.registry import check_fits
        from labmates.models.names import parse_model

        for model in self.models():
            parse_model(model)
        self.check_structured(entrant.reasoning or self.reasoning for entrant in self.entrants)
        game = self.make_game()
        check_fits(self.mechanisms(), game)
        if self.ablation == "real-words":
            self.table.meanings()
        self._check_library(game)
        if self.seating == "multisets" and not game.is_symmetric:
            raise UsageError(
                "'multisets' plays each combination once, which requires a symmetric game; use seating 'all'"
            )
        if len(self.entrants) ** game.players > MOST_MATCHES:
            raise UsageError(f"{len(self.entrants)} models in games of {game.players} make too many matches")

    def _check_library(self, game: NormalForm) -> None:
        """Check that strategies of iterated games play a prisoner's dilemma without negotiations."""
        from labmates.agents.players.base import check_player
        from labmates.games.iterated.match import Payoffs
        from labmates.games.normal_form import prisoners_payoffs
        from labmates.mechanisms.negotiation import Negotiation
        from labmates.models.names import parse_model
        from labmates.models.scripted import BASELINES

        for model in map(parse_model, self.models()):
            if not model.scripted or getattr(BASELINES.get(model.name), "chooses", None) is None:
                continue
            payoffs = prisoners_payoffs(game)
            if payoffs is None or any(isinstance(mechanism, Negotiation) for mechanism in self.mechanisms()):
                raise UsageError(
                    f"'{model}' plays prisoner's dilemmas under none, repetition or reputation, not "
                    f"'{self.table.name}' under '{self.mechanism}'"
                )
            check_player(model.name, Payoffs(*payoffs))
