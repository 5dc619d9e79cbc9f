"""The parameters of `labmates.run` by experiment, for type checkers.

Made from the models of the conditions by ``python -m tests.support.condition_types``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NewType, Protocol, Required, TypedDict, TypeVar, Unpack, cast, overload

if TYPE_CHECKING:
    from labmates.studies.settings import RunSettings
    from labmates.workflows.approval import Ask

R_co = TypeVar("R_co", covariant=True)
Kind = NewType("Kind", str)
"""The name of an experiment of another package, whose parameters no type checker knows."""


class RunOptions(TypedDict, total=False):
    """The parameters that runs of all experiments have."""

    seed: int
    replicates: int
    store: str | None
    settings: RunSettings | Mapping[str, Any] | None
    progress: bool
    approve: Ask | None


class DilemmaRun(RunOptions, total=False):
    """Parameters of ``dilemma``."""

    max_output_tokens: int
    temperature: float | None
    thoughts: Literal["tools", "turn", "all"]
    repair_turns: int
    prices: Any
    structured: bool
    wording: Literal["ours", "paper"]
    ablation: Literal["none", "neutral", "length-matched", "no-aim", "real-words"]
    game: Required[Any]
    entrants: Required[Any]
    mechanism: str
    terms: Any
    seating: Literal["all", "multisets"]
    reasoning: Literal["none", "cot", "tom"]


class EvolutionRun(RunOptions, total=False):
    """Parameters of ``evolution``."""

    game: Required[Literal["public-goods", "collective-risk", "common-pool", "by-count", "by-action"]]
    payoffs: Any
    strategies: Required[str]
    digest: str | None
    group_size: int
    rounds: int
    rules: Any
    protocol: Literal["paper", "imitation", "moran"]
    structure: Literal["well-mixed", "ring", "lattice", "regular", "small-world", "scale-free"]
    degree: int
    updates: int | None
    model_names: Any
    attitudes: Any
    population: int
    games: int
    elite: int
    mutation: float | None
    strength: float
    switching_cost: float
    mutates_to: Literal["any", "other-base"]
    threshold: float
    generations: int | None
    window: int


class GameRun(RunOptions, total=False):
    """Parameters of ``game``."""

    max_output_tokens: int
    temperature: float | None
    thoughts: Literal["tools", "turn", "all"]
    repair_turns: int
    prices: Any
    structured: bool
    wording: Literal["ours", "paper"]
    game: Required[str]
    model: Required[Any]
    model_for: Any
    group_size: int
    groups: int
    rounds: int | None
    rules: Any
    framing: Literal["standard", "alternate"]
    reasoning: Literal["none", "cot", "tom"]
    deliberation: bool


class ScienceRun(RunOptions, total=False):
    """Parameters of ``science``."""

    task: Required[str]
    model: Required[Any]
    model_for: Any
    difficulty: Literal["easy", "medium", "hard"]
    budget: Any
    reserve: Any
    visibility: Literal["full", "team", "hidden"]
    team_size: int
    theory_of_mind: bool
    max_turns: int
    max_output_tokens: int
    context_tokens: int | None
    temperature: float | None
    thoughts: Literal["tools", "turn", "all"]
    deliberation_rounds: int
    max_requests: int
    output_excerpt: Literal["ends", "first"]
    repair_turns: int
    code_timeout: float
    prices: Any
    organisation: Any
    solo: bool
    evidence: str
    arm: Literal["oracle", "restricted", "team", "mute"]


class SelfplayRun(RunOptions, total=False):
    """Parameters of ``selfplay``."""

    game: Required[Literal["public-goods", "collective-risk", "common-pool", "by-count", "by-action"]]
    payoffs: Any
    strategies: Required[str]
    digest: str | None
    group_size: int
    rounds: int
    rules: Any
    model: str | None
    collective: str
    selfish: str
    samples: int
    step: int | None


class StrategiesRun(RunOptions, total=False):
    """Parameters of ``strategies``."""

    max_output_tokens: int
    temperature: float | None
    thoughts: Literal["tools", "turn", "all"]
    repair_turns: int
    prices: Any
    model: Required[Any]
    game: Required[Literal["public-goods", "collective-risk", "common-pool"]]
    attitude: Required[str]
    number: int
    prompt: Literal["standard", "brief", "paper"]
    information: Literal["counts", "individual", "source"]
    system: str
    implementations: int


class TournamentRun(RunOptions, total=False):
    """Parameters of ``tournament``."""

    max_output_tokens: int
    temperature: float | None
    thoughts: Literal["tools", "turn", "all"]
    repair_turns: int
    prices: Any
    structured: bool
    wording: Literal["ours", "paper"]
    ablation: Literal["none", "neutral", "length-matched", "no-aim", "real-words"]
    structure: Required[Literal["ri", "gc", "sa"]]
    model: Required[Any]
    model_for: Any
    teams: int
    team_size: Any
    rounds: int
    rounds_per_player: int | None
    noise: float
    continuation: float
    plan_every: int
    critique_turns: int
    messages: Literal["none", "each-match", "each-round"]
    reputation: Literal["none", "shown"]
    team_choice: Literal["given", "wished"]
    comprehension: Literal["asked", "skipped"]
    temptation: int
    reward: int
    punishment: int
    sucker: int


class RunFunction(Protocol[R_co]):
    """A function that runs conditions of any experiment."""

    @overload
    def __call__(self, kind: Literal["dilemma"], **condition: Unpack[DilemmaRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Literal["evolution"], **condition: Unpack[EvolutionRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Literal["game"], **condition: Unpack[GameRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Literal["science"], **condition: Unpack[ScienceRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Literal["selfplay"], **condition: Unpack[SelfplayRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Literal["strategies"], **condition: Unpack[StrategiesRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Literal["tournament"], **condition: Unpack[TournamentRun]) -> R_co: ...
    @overload
    def __call__(self, kind: Kind, **condition: Any) -> R_co: ...


def by_experiment(function: Callable[..., R_co]) -> RunFunction[R_co]:
    """The same function; type checkers know its parameters by experiment."""
    return cast(RunFunction[R_co], function)
