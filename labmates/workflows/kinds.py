"""One shape for every kind of experiment: a condition, a function that executes a run of it, and its metrics."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from labmates.analysis.intervals import Domains, unknown
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.money import show_dollars
from labmates.errors import UsageError, explain
from labmates.records.run import STOPPED
from labmates.registry import Registry

if TYPE_CHECKING:
    from labmates.budgets.prices import PriceList
    from labmates.judges.base import Report
    from labmates.models.catalog import Catalog
    from labmates.records.bodies import Bodies
    from labmates.records.events import Event, ScoreEvent
    from labmates.workflows.services import Services


class Condition(BaseModel, ABC):
    """Every parameter of one cell of an experiment. Two equal conditions have the same key."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    kind: ClassVar[str]
    material: ClassVar[frozenset[str]] = frozenset()
    """Fields on which depends what the agents work on; what was done of it can't be gone on with by other values."""

    @property
    def key(self) -> str:
        """A stable name of this condition: a hash of its canonical JSON, 16 hexadecimal digits."""
        data = {"kind": self.kind, **self.model_dump(mode="json")}
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def pool(self) -> int | None:
        """The credits of one run, in micro-dollars, or None if the kind has no budget."""
        return None

    def twin(self) -> Condition | None:
        """Return the condition of one agent alone on equal terms, and of that one the teams'; None if there is none."""
        return None

    @abstractmethod
    def models(self) -> list[str]:
        """Return the models that take part, each once, in order."""

    @abstractmethod
    def check(self) -> None:
        """Check what a type can't say (for instance that the task is known).

        Raises
        ------
        UsageError
            If something is wrong.
        """


@dataclass(frozen=True)
class Outcome:
    """How one run ended.

    Attributes
    ----------
    status
        ``exhausted`` if the budget or the bound ran out before the end.
    metrics
        Numbers by name; a metric that could not be had is left out.
    invalid
        Why the run may not be used though it has ended (a model whose decisions failed has not played, a paper of a
        few characters is no paper); None for a valid run.
    """

    status: Literal["completed", "exhausted"]
    metrics: Mapping[str, float]
    invalid: str | None = None


@dataclass(frozen=True)
class Estimate:
    """What one run is expected to take.

    Attributes
    ----------
    calls
        Model calls.
    input_tokens, output_tokens
        Of all calls together.
    seconds
        From its beginning to its end.
    """

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float


@dataclass(frozen=True)
class Kind:
    """A kind of experiment.

    Attributes
    ----------
    report
        Makes what judges read of an ended run, out of its condition, its seed, its events and its bodies; None for a
        kind that has nothing to judge.
    judged
        Makes the metrics that come from scores of judges, by which a run that is judged again gets its present ones.
    headline
        The metrics that tables of runs show; by default the first three.
    uses_code
        Whether its agents run code, for which there has to be a sandbox.
    uses_strategies
        Whether strategies written as code play, for which there have to be workers.
    salted
        Whether its runs have data sets, which depend on the private salt (`labmates.tasks.salt`).
    estimate
        What a run of a condition is expected to take, before any has been measured; None if nobody knows.
    exact_calls
        Whether `estimate` tells just how many calls a run makes, if no reply has to be asked for again.
    spread
        Standard deviation of metrics, which lie from 0 to 1, among runs of one condition, to plan with before any has
        been measured.
    domains
        The values that metrics can take, by condition, so that intervals don't leave them; any where none is named.
    """

    name: str
    condition: type[Condition]
    execute: Callable[[Any, Services], Awaitable[Outcome]]
    metrics: tuple[str, ...]
    report: Callable[[Any, int, Sequence[Event], Bodies], Report] | None = None
    judged: Callable[[Sequence[ScoreEvent]], Mapping[str, float]] | None = None
    headline: tuple[str, ...] = ()
    uses_code: bool = False
    uses_strategies: bool = False
    salted: bool = False
    estimate: Callable[[Any], Estimate] | None = None
    exact_calls: bool = False
    spread: Mapping[str, float] = field(default_factory=dict)
    domains: Domains = unknown

    async def carry_out(self, condition: Any, services: Services) -> Outcome:
        """Execute a run; one whose bound can't pay its next call ends there, and keeps what it has."""
        try:
            return await self.execute(condition, services)
        except InsufficientFundsError:
            bound = show_dollars(services.ledger.total)
            why = (
                f"{STOPPED} of {bound} before its end: {show_dollars(services.ledger.remaining)} can't pay another call"
            )
            return Outcome("exhausted", {}, why)

    @property
    def shown(self) -> tuple[str, ...]:
        """The metrics that tables of runs show."""
        return self.headline or self.metrics[:3]


KINDS: Registry[Kind] = Registry(
    "kind",
    "labmates.kinds",
    {
        "science": "labmates.workflows.science.kind:SCIENCE",
        "game": "labmates.workflows.game.kind:GAME",
        "dilemma": "labmates.workflows.dilemma.kind:DILEMMA",
        "tournament": "labmates.workflows.tournament.kind:TOURNAMENT",
        "selfplay": "labmates.workflows.selfplay.kind:SELFPLAY",
        "evolution": "labmates.workflows.evolution.kind:EVOLUTION",
        "strategies": "labmates.workflows.strategies.kind:STRATEGIES",
    },
)
"""All kinds of experiments by name."""


def make_condition(
    kind: str, values: Mapping[str, Any], names: Callable[[str], str] = str, *, catalog: Catalog | None = None
) -> Condition:
    """Return the condition of a kind of experiment.

    Parameters
    ----------
    names
        How fields are called in an error.
    catalog
        Resolves the models, and collects how they are reached.

    Raises
    ------
    UsageError
        If the kind is unknown, or a value is missing, unknown or out of bounds.
    """
    try:
        condition = KINDS.get(kind).condition.model_validate(dict(values), context=catalog)
    except ValidationError as error:
        raise UsageError(explain(error, names)) from error
    return with_bill(condition, catalog)


ConditionT = TypeVar("ConditionT", bound=Condition)


def with_bill(condition: ConditionT, catalog: Catalog | None) -> ConditionT:
    """Return a condition whose pool charges the bill with what the providers charge in its price list.

    Raises
    ------
    UsageError
        If the price of one of its models is unknown.
    """
    prices: PriceList | None = getattr(condition, "prices", None)
    if catalog is None or prices is None or prices.credits != "bill":
        return condition
    from labmates.models.pricing import known_price

    models = {model: known_price(model, catalog.options()) for model in condition.models()}
    if missing := [model for model, price in models.items() if price is None]:
        raise UsageError(
            f"prices: the pool is to charge the bill, and the price of {missing[0]} is unknown; give it, for instance "
            "MODEL?price.input=0.1&price.output=0.4"
        )
    filled = prices.model_copy(update={"models": {**models, **prices.models}})
    return condition.model_copy(update={"prices": filled})
