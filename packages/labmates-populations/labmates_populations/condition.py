"""The conditions of self-play, evolution and strategy writing. This module imports nothing heavy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from labmates.errors import UsageError
from labmates.models.catalog import ModelRef
from labmates.workflows.play.condition import PlayCondition
from labmates.workflows.protocol.analysis import Params
from labmates.workflows.protocol.experiment import Condition

if TYPE_CHECKING:
    from labmates_populations.engine.workers import Workers
    from labmates_populations.repeated import RepeatedGame


Game = Literal["public-goods", "collective-risk", "common-pool", "by-count", "by-action"]


def _read(value: str | None) -> str | None:
    from labmates_populations.count_payoffs import read_payoffs

    return None if value is None else read_payoffs(value)


PayoffsFile = Annotated[
    str | None,
    BeforeValidator(_read),
    Field(description="YAML file with the payoffs, or their name (by-count, by-action)."),
]
"""Payoffs of a user's game: the path of a file when given, then its content."""


def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


ModelNames = Annotated[
    tuple[str, ...], AfterValidator(_in_order), Field(description="Use strategies by this model; repeatable.")
]
Attitudes = Annotated[
    tuple[Annotated[str, AfterValidator(str.lower)], ...],
    AfterValidator(_in_order),
    Field(description="Use strategies with this attitude; repeatable."),
]
Benefit = Annotated[
    float | None, Field(description="Multiplier (public-goods), or benefit (collective-risk). [default: 2]")
]
Cooperators = Annotated[
    int | None, Field(description="Cooperators needed (collective-risk). [default: half of the players]")
]
Capacity = Annotated[int | None, Field(description="Maximum stock (common-pool). [default: 4 per player]")]
Processes = Annotated[
    int | None, Field(ge=1, le=256, description="Worker processes; by default one for each processor.")
]
Sandbox = Annotated[
    Literal["auto", "unsafe-local"],
    Field(
        description="Sandbox of the strategies' code: confined processes (auto), or plain processes with all your "
        "rights (unsafe-local)."
    ),
]


class SandboxParams(Params):
    """The sandbox of strategies' code, common to the commands and analyses that run it."""

    sandbox: Sandbox = "auto"

    def warn(self, tell: Callable[[str], None]) -> None:
        """Warn if strategies' code is not confined."""
        if self.sandbox == "unsafe-local":
            tell("WARNING: strategies' code runs on this machine without any isolation.")

    def workers(self, tell: Callable[[str], None], processes: int | None) -> Workers:
        """Workers that play strategies, with a warning if they are not confined."""
        from labmates_populations.engine.workers import Workers

        self.warn(tell)
        return Workers(processes=processes, unsafe=self.sandbox == "unsafe-local")


def game_of(
    name: str, n_players: int, n_rounds: int, rules: Mapping[str, Any], payoffs: str | None = None
) -> RepeatedGame:
    """The repeated game called `name`; `payoffs` are those of by-count and by-action.

    Raises
    ------
    UsageError
        If a parameter is unknown or out of bounds, or payoffs are given for a game with built-in payoffs.
    """
    from labmates_populations.count_payoffs import rules_of
    from labmates_populations.repeated import make_repeated

    user_rules = rules_of(payoffs)
    if (name in ("by-count", "by-action")) != bool(user_rules):
        raise UsageError("payoffs (--payoffs FILE) and --game by-count or by-action go together")
    if user_rules and (name == "by-action") != ("actions" in user_rules):
        other = "by-action" if "actions" in user_rules else "by-count"
        raise UsageError(f"payoffs: the file is of another game; give --game {other}")
    return make_repeated(name, n_players, n_rounds, {**rules, **user_rules})


class RulesParams(SandboxParams):
    """A game and its rules."""

    game: Game = Field(description="Game; by-count and by-action use your own payoffs.")
    payoffs: PayoffsFile = None
    k: Benefit = None
    m: Cooperators = None
    capacity: Capacity = None

    def make_game(self, group_size: int, rounds: int, **rules: float) -> RepeatedGame:
        """The game under these rules and further ones."""
        rules = {**self.model_dump(include={"k", "m", "capacity"}), **rules}
        return game_of(self.game, group_size, rounds, rules, self.payoffs)


class PopulationCondition(Condition, ABC):
    """A condition in which strategies play: the game and the strategies."""

    material: ClassVar[frozenset[str]] = frozenset(
        {"game", "payoffs", "strategies", "digest", "group_size", "rounds", "rules"}
    )

    game: Game = Field(description="Game; by-count and by-action use your own payoffs.")
    payoffs: PayoffsFile = None
    strategies: str = Field(
        description="Library of strategies: a folder with a subfolder for each game, or a file (see: labmates "
        "strategies)."
    )
    digest: str | None = Field(
        None, description="Expected digest of the strategy files; by default, whatever is there."
    )
    group_size: int = Field(4, ge=2, le=4096, description="Players in a group.")
    rounds: int = Field(20, ge=1, le=1000, description="Rounds of a game.")
    rules: dict[str, FiniteFloat] = Field(
        default_factory=dict,
        description="Parameter of the game, NAME=VALUE; repeatable: k, m, "
        "capacity; in every game noise (probability that a move is executed as another one), continuation "
        "(probability of another round; players do not see the end) and sources (1: strategies read each other's "
        "code).",
    )

    @model_validator(mode="after")
    def _playable(self) -> PopulationCondition:
        try:
            self.make_game()
        except UsageError as error:
            fields = {"n_players": "group_size", "payoffs": "payoffs"}
            name = next((field for word, field in fields.items() if str(error).startswith(word)), "rules")
            raise fault(self, name, str(error)) from error
        if self.digest is None:
            from labmates_populations.engine.library import library_digest

            try:
                object.__setattr__(self, "digest", library_digest(Path(self.strategies), self.game))
            except UsageError as error:
                raise fault(self, "strategies", str(error)) from error
        return self

    @property
    @abstractmethod
    def chosen(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and attitudes whose strategies take part; all if empty."""

    def make_game(self) -> RepeatedGame:
        """The game; a `UsageError` if its parameters are invalid."""
        rules = {name: int(value) if value == int(value) else value for name, value in self.rules.items()}
        return game_of(self.game, self.group_size, self.rounds, rules, self.payoffs)

    def models(self) -> list[str]:
        """No models: the authors of the strategies are not called."""
        return []

    def check(self) -> None:
        """Nothing more: other faults show only when the strategies are loaded."""


def fault(condition: Condition, name: str, text: str) -> ValidationError:
    """The validation error of one field, for a fault that depends on several fields."""
    why = PydanticCustomError("population", "{text}", {"text": text})
    details = InitErrorDetails(type=why, loc=(name,), input=getattr(condition, name))
    return ValidationError.from_exception_data(type(condition).__name__, [details])


class SelfplayCondition(PopulationCondition):
    """Play one model's strategies in groups that mix two attitudes (collective-behaviour paper, section 5)."""

    kind: ClassVar[str] = "selfplay"

    model: str | None = Field(
        None, description="Author model of the strategies; by default the only one in the library."
    )
    collective: str = Field("collective", description="Attitude of the cooperative players.")
    selfish: str = Field("exploitative", description="Attitude of the selfish players.")
    samples: int = Field(200, ge=2, le=100_000, description="Groups per mixture.")
    step: int | None = Field(
        None, ge=1, le=4096, description="Step between mixtures; by default chosen for about 64 mixtures."
    )

    @property
    def chosen(self) -> tuple[tuple[str, ...], tuple[str, str]]:
        """The model, if given, and both attitudes."""
        return (self.model,) if self.model else (), (self.collective, self.selfish)

    @field_validator("collective", "selfish")
    @classmethod
    def _as_files_have_it(cls, value: str) -> str:
        return value.lower()

    def check(self) -> None:
        """Check that the strategies are by one model, with enough of each attitude for a group."""
        from labmates_populations.engine.library import files_for, only_gene, written_sets

        files = files_for(Path(self.strategies), self.game, (self.model,) if self.model else ())
        if len(files) > 1:
            raise UsageError(f"--model: choose the author of the strategies: {', '.join(file.model for file in files)}")
        sets = written_sets(files[0])
        for attitude in (self.collective, self.selfish):
            written = sets[only_gene(sets, attitude)]
            if written < self.group_size:
                raise UsageError(
                    f"{files[0].model} has {written} strategies with the attitude '{attitude}'; mixtures of "
                    f"{self.group_size} players need {self.group_size} (a smaller --group-size, or more strategies)"
                )

    @model_validator(mode="after")
    def _two_attitudes(self) -> SelfplayCondition:
        if self.collective == self.selfish:
            raise fault(self, "selfish", f"must differ from the attitude of the others ('{self.collective}')")
        return self


_USUAL = {"paper": (200, 0.1), "imitation": (1000, 0.0025), "moran": (10_000, 0.0025)}
"""Generations and mutation of each protocol."""
_UNUSED = {"paper": ("strength", "window"), "imitation": ("elite", "threshold"), "moran": ("elite", "window")}


def unused_settings(settings: Mapping[str, object]) -> set[str]:
    """The settings that a condition's protocol, or the lack of a graph, leaves unused."""
    graph = ("degree",) if settings.get("structure") == "well-mixed" else ()
    return {*_UNUSED.get(str(settings.get("protocol")), ()), *graph}


class EvolutionCondition(PopulationCondition):
    """Evolve a population of strategies by author and attitude (collective-behaviour paper, section 6)."""

    kind: ClassVar[str] = "evolution"

    protocol: Literal["paper", "imitation", "moran"] = Field(
        "paper",
        description="Spread of genes: paper (the best agents keep their genes, all others copy in proportion to "
        "payoff), imitation (agents compare with one other agent and copy by the Fermi rule) or moran (a parent "
        "chosen in proportion to fitness has a child that replaces another agent).",
    )
    structure: Literal["well-mixed", "ring", "lattice", "regular", "small-world", "scale-free"] = Field(
        "well-mixed",
        description="Who meets and imitates whom: everybody, or neighbours on a graph, with a group around each "
        "agent (imitation, moran).",
    )
    degree: int = Field(
        4,
        ge=2,
        le=4096,
        description="Neighbours per agent; on small-world and scale-free graphs their mean.",
    )
    updates: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Agents per generation that compare (imitation; by default all) or have a child (moran; by "
        "default 1).",
    )
    model_names: ModelNames = ()
    attitudes: Attitudes = ()
    population: int = Field(512, ge=4, le=1_000_000, description="Number of agents.")
    games: int = Field(4, ge=1, le=1000, description="Games per agent and generation.")
    elite: int = Field(64, ge=0, le=1_000_000, description="Number of best agents that keep gene and strategy (paper).")
    mutation: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Probability of a mutation: of a copied gene (paper, by default 0.1), or of each locus (imitation "
        "and moran, by default 0.0025).",
    )
    strength: float = Field(
        1.0,
        ge=0,
        le=1000,
        description="Selection strength on payoffs scaled to 0 to 1: of the Fermi rule (imitation), or, at most 1, the "
        "payoff's weight in the fitness (moran).",
    )
    switching_cost: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Payoff advantage at which an agent is indifferent between its own and another model, on payoffs "
        "scaled to 0 to 1 (imitation).",
    )
    mutates_to: Literal["any", "other-base"] = Field(
        "any",
        description="Attitudes that a mutation may lead to: any other, or only those of the other base (collective or "
        "selfish), as in the published program.",
    )
    threshold: float = Field(
        0.75, gt=0, le=1, description="Share of one gene at which the evolution ends (paper, moran)."
    )
    generations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Maximum number of generations; by default 200 (paper), 1000 (imitation) or 10,000 (moran).",
    )
    window: int = Field(
        100, ge=1, le=1_000_000, description="Number of final generations over which shares are averaged (imitation)."
    )

    @property
    def chosen(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The models and the attitudes."""
        return self.model_names, self.attitudes

    @property
    def decisions(self) -> int:
        """Decisions of a generation; on a graph a group forms around each agent."""
        around_each = 1 if self.structure == "well-mixed" else self.group_size
        return self.population * self.games * self.rounds * around_each

    @field_validator("mutation", "generations")
    @classmethod
    def _usual(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None or "protocol" not in info.data:
            return value
        return _USUAL[info.data["protocol"]][info.field_name == "mutation"]

    @model_validator(mode="after")
    def _whole_groups(self) -> EvolutionCondition:
        if self.population % self.group_size and self.structure == "well-mixed":
            raise fault(self, "population", f"must be a multiple of the group size ({self.group_size})")
        if self.protocol == "paper" and self.elite > self.population:
            raise fault(self, "elite", f"must be at most the population ({self.population})")
        if self.protocol == "moran":
            if self.strength > 1:
                raise fault(self, "strength", "must be at most 1 in a Moran process")
            object.__setattr__(self, "updates", self.updates or 1)
        if self.switching_cost and self.protocol != "imitation":
            raise fault(self, "switching_cost", "only for --protocol imitation")
        if self.updates is not None and (self.protocol == "paper" or self.updates > self.population):
            text = f"only for --protocol imitation or moran, and at most the population ({self.population})"
            raise fault(self, "updates", text)
        if self.structure != "well-mixed" and self.protocol == "paper":
            raise fault(self, "structure", "a graph needs --protocol imitation or moran")
        return self

    @model_validator(mode="after")
    def _on_a_graph(self) -> EvolutionCondition:
        if self.structure == "well-mixed":
            return self
        from labmates_populations.engine.structure import check_structure

        try:
            check_structure(self.structure, self.population, self.degree, self.group_size)
        except UsageError as error:
            raise fault(self, str(error).partition(" ")[0], str(error).partition(" ")[2]) from error
        return self


class MixedplayCondition(PopulationCondition, PlayCondition):
    """Let chat models play repeated games in groups with strategies written as code."""

    kind: ClassVar[str] = "mixedplay"
    material: ClassVar[frozenset[str]] = PopulationCondition.material | {"groups", "chats"}

    game: Literal["public-goods", "collective-risk", "common-pool"] = Field(description="The game.")
    model: ModelRef = Field(description="The chat model, provider:name (see: labmates models).")
    chats: int = Field(1, ge=1, le=4095, description="Players of each group that are the chat model.")
    groups: int = Field(5, ge=1, le=1000, description="Groups; their strategies are drawn from the library.")
    model_names: ModelNames = ()
    attitudes: Attitudes = ()

    @property
    def coded(self) -> int:
        """Players of each group that are strategies."""
        return self.group_size - self.chats

    @property
    def chosen(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The authors and the attitudes."""
        return self.model_names, self.attitudes

    @model_validator(mode="after")
    def _both_kinds(self) -> MixedplayCondition:
        if self.coded < 1:
            raise fault(self, "chats", f"must be less than the group size ({self.group_size})")
        if shared := sorted({"noise", "continuation", "sources"} & self.rules.keys()):
            raise fault(self, "rules", f"{shared[0]} is only for groups without chat models")
        return self

    def models(self) -> list[str]:
        """The chat model."""
        return [self.model]

    def check(self) -> None:
        """Check that the model is known."""
        from labmates.models.names import parse_model

        parse_model(self.model)


PROMPTS_VERSION = "4"
"""The version of the prompts in the folder ``prompts``; raise it whenever they change."""


class StrategiesCondition(PlayCondition):
    """Have a model write strategies for one game with one attitude (collective-behaviour paper, section 4.1)."""

    kind: ClassVar[str] = "strategies"

    model: ModelRef = Field(description="The model that writes, provider:name (see: labmates models).")
    game: Literal["public-goods", "collective-risk", "common-pool"] = Field(description="The game.")
    attitude: str = Field(description="Attitude of the strategies, for instance exploitative or collective.")
    number: int = Field(
        8, ge=1, le=100_000, description="Number of strategies to describe.", json_schema_extra={"flags": ["-n"]}
    )
    prompt: Literal["standard", "brief", "paper"] = Field(
        "standard",
        description="Prompt for the description, to measure its effect; paper has the content of the paper's prompt.",
    )
    information: Literal["counts", "individual", "source"] = Field(
        "counts",
        description="What players see of the others: the number of cooperators (counts), each player's move and "
        "payoff, as in the paper (individual), or the number of cooperators and all code (source).",
    )
    system: str = Field(
        "",
        max_length=20_000,
        description="System prompt before each request, such as a developer's default (collective-behaviour paper, "
        "section 7).",
    )
    implementations: int = Field(
        5,
        ge=1,
        le=100,
        description="Maximum number of attempts to implement a description, until one passes the checks.",
    )

    @field_validator("attitude")
    @classmethod
    def _a_word(cls, value: str) -> str:
        word = value.replace("-", "")  # class names contain the attitude
        if not word.isascii() or not word.isalpha():
            raise ValueError("must be one word of letters, for instance exploitative or self-interested")
        return word.lower()

    def models(self) -> list[str]:
        """The model that writes."""
        return [self.model]

    def check(self) -> None:
        """Check that the model is known."""
        from labmates.models.names import parse_model

        parse_model(self.model)
