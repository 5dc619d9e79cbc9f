"""The experiment protocol: a condition, a LangGraph graph, metrics, analyses and a page.

Everything else follows from it: the options of ``labmates run``, the grid of a study, resume, replay, fork, plan,
exports, the columns of the viewer and the parts of a report.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.money import show_dollars
from labmates.errors import UsageError, explain, unknown_name
from labmates.records.events import WarningEvent
from labmates.records.run import STOPPED, RunRecord
from labmates.records.view import flatten
from labmates.registry import Registry, lazy
from labmates.stats.domains import ANY, Domain
from labmates.workflows.protocol.condition import Condition as Condition

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

    from labmates.budgets.prices import PriceList
    from labmates.judges.base import Report
    from labmates.models.catalog import Catalog
    from labmates.pages.links import Links
    from labmates.pages.section import Section
    from labmates.records.bodies import Bodies
    from labmates.records.events import Event, ScoreEvent
    from labmates.records.reading import RunReader
    from labmates.stats.ratings import Cell
    from labmates.stats.tables import Table
    from labmates.workflows.protocol.analysis import Runs
    from labmates.workflows.protocol.services import Services


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run.

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
    """The expected usage of one run.

    Attributes
    ----------
    calls
        Model calls.
    input_tokens, output_tokens
        Of all calls together.
    seconds
        From its beginning to its end.
    exact
        Whether a run without repair turns makes exactly this number of calls.
    """

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float
    exact: bool = False


@dataclass(frozen=True)
class Metric:
    """A number that runs of an experiment end with.

    Attributes
    ----------
    text
        Its meaning in a phrase, with the unit.
    domain
        The values it can take, which its intervals keep to; a function where they depend on the condition.
    better
        The direction that is better; None for a description.
    spread
        Standard deviation among runs of one condition, to plan studies with before any was measured; None if unknown.
    headline
        Whether tables of runs show it.
    same_as
        The metric that it states on another scale; comparisons don't test both.
    words
        Its name in sentences, if that is no noun.
    floor
        The lowest value that it can take in a run with these metrics, where the domain leaves that open; None if
        unknown.
    """

    name: str
    text: str = ""
    domain: Domain | Callable[[Mapping[str, Any]], Domain] = ANY
    better: Literal["higher", "lower"] | None = None
    spread: float | None = None
    headline: bool = False
    same_as: str = ""
    words: str = ""
    floor: Callable[[Mapping[str, float]], float | None] | None = None

    def domain_in(self, condition: Mapping[str, Any]) -> Domain:
        """The values it can take in runs of a condition, given as plain data."""
        return self.domain if isinstance(self.domain, Domain) else self.domain(condition)

    def domain_of(self, runs: Iterable[RunRecord]) -> Domain:
        """The values it can take in any of these runs."""
        each = [self.domain_in(run.condition) for run in {run.key: run for run in runs}.values()]
        low, high = min(domain.low for domain in each), max(domain.high for domain in each)
        floors = [low] if self.floor is None else [self.floor(run.metrics) for run in runs]
        return Domain(max([low, *([min(known)] if (known := [f for f in floors if f is not None]) else [])]), high)


@dataclass(frozen=True)
class Player:
    """What one model's agent did and got in a run.

    Attributes
    ----------
    run
        The run's id.
    place
        Models are compared in equal places, for instance a seat and its co-players.
    values
        By metric; missing ones are left out.
    """

    run: str
    model: str
    place: Hashable
    values: Mapping[str, float]


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session that resources shared by its runs depend on.

    Attributes
    ----------
    processes
        Worker processes; None for one per processor.
    sandbox
        Where code runs.
    executor
        Where worker processes are: on this machine, or on a cluster, as NAME or NAME:ADDRESS.
    """

    processes: int | None = None
    sandbox: str = "auto"
    executor: str = "local"


C = TypeVar("C", bound=Condition)


_table = lazy("labmates.workflows.play.playing:Table")


def no_state(condition: Condition, seed: int) -> dict[str, Any]:
    """The first state of a graph that starts from nothing."""
    del condition, seed
    return {}


@dataclass(frozen=True)
class Experiment(Generic[C]):
    """An experiment: everything that the command line, studies, the viewer and reports need to know of it.

    Other packages add theirs through the entry-point group ``labmates.experiments``. Functions that import much are
    given as ``lazy("module:function")``, so that listing experiments stays fast.

    Attributes
    ----------
    condition
        The model of its conditions, the only place where its parameters are declared.
    graph
        Returns the LangGraph graph of a condition.
    start
        Returns the graph's first state from a condition and the run's seed.
    context
        Returns the graph's runtime context, or opens it as an asynchronous context manager, from a condition and the
        services of the run. By default a `labmates.workflows.play.playing.Table`, which asks players.
    outcome
        Returns how a run ended from its last state and its context.
    metrics
        The numbers that a run ends with, the most important first.
    example
        A command that runs it, for ``--help`` and the docs.
    page
        Yields the sections of a run's page in the viewer; without it the page is made from the events alone.
    tables
        Yields the tables that ``labmates show`` prints of a run.
    estimate
        What a run of a condition is expected to take, before any was measured.
    needs_sandbox
        Whether its agents run code.
    shared
        Opens what all its runs of a session share; they find it as `Services.shared`.
    salted
        Whether its runs have data sets that depend on the private salt (`labmates.tasks.salt`).
    report
        Makes the report that judges read, from a condition, a seed, events and bodies; None if nothing is judged.
    judged
        The metrics that follow from judges' scores; they are computed anew when a run is judged again.
    players
        What the models of its runs did and got, for comparisons of models in the same run.
    primary
        The metric that comparisons test first, unadjusted; by default the first.
    usable
        The metric that is 0 for a run without a usable result, such as a readable report.
    cells
        What models got against each other in its completed runs, for ratings; the second argument keeps models of which
        too many decisions failed.
    described
        A condition's JSON data as tables show it, without the parameters that have no effect in it.
    """

    name: str
    condition: type[C]
    graph: Callable[[Any], CompiledStateGraph[Any, Any]]
    outcome: Callable[[Any, Any], Outcome | Awaitable[Outcome]]
    metrics: tuple[Metric, ...]
    start: Callable[[Any, int], Any] = no_state
    context: Callable[[Any, Services], Any] = _table
    example: str = ""
    page: Callable[[RunReader, Links], Iterable[Section]] | None = None
    tables: Callable[[RunReader], Iterable[Table]] | None = None
    estimate: Callable[[Any], Estimate] | None = None
    needs_sandbox: bool = False
    shared: Callable[[SessionSettings], AbstractContextManager[Any]] | None = None
    salted: bool = False
    report: Callable[[Any, int, Sequence[Event], Bodies], Report] | None = None
    judged: Callable[[Sequence[ScoreEvent]], Mapping[str, float]] | None = None
    players: Callable[[Runs], Iterable[Player]] | None = None
    cells: Callable[[Runs, bool], Sequence[Cell]] | None = None
    described: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    primary: str = ""
    usable: str = ""

    def __post_init__(self) -> None:
        if not self.primary and self.metrics:
            object.__setattr__(self, "primary", self.metrics[0].name)

    @classmethod
    def plain(
        cls,
        name: str,
        condition: type[C],
        play: Callable[[Any, Services], Awaitable[Outcome]],
        metrics: tuple[Metric, ...],
        **more: Any,
    ) -> Experiment[C]:
        """An experiment whose flow is one function: a graph of a single step.

        Parameters
        ----------
        play
            Executes a run from its condition and services.
        more
            Further attributes.
        """
        graph, outcome, context = (
            lazy(f"labmates.workflows.protocol.one_step:{part}") for part in ("graph", "outcome", "Step")
        )
        return cls(name, condition, graph, outcome, metrics, context=partial(context, play), **more)

    async def execute(
        self, condition: C, services: Services, graph: CompiledStateGraph[Any, Any] | None = None
    ) -> Outcome:
        """Execute a run; one whose bound can't pay its next call ends there, and keeps what it has.

        Parameters
        ----------
        graph
            By default that of the condition.

        Raises
        ------
        EndpointError
            If a model can't be reached; the run can be resumed.
        """
        from labmates.workflows.people.answered import invoke_answered

        state = self.start(condition, services.seed)
        for number, doubt in enumerate(condition.doubts(), start=1):
            services.recorder.once(WarningEvent(step=f"doubt/{number}", text=doubt))
        try:
            made = self.context(condition, services)
            async with made if isinstance(made, AbstractAsyncContextManager) else nullcontext(made) as context:
                config = self._config(condition, services)
                graph = graph or self.graph(condition)
                if condition.interrupts or (condition.approvals and services.approver is not None):
                    state = await invoke_answered(graph, state, config, context, context.approvals.answer)
                else:
                    state = await graph.ainvoke(state, config, context=context)
                outcome = self.outcome(state, context)
                return await outcome if isinstance(outcome, Awaitable) else outcome
        except InsufficientFundsError:
            bound = show_dollars(services.ledger.total)
            why = (
                f"{STOPPED} of {bound} before its end: {show_dollars(services.ledger.remaining)} can't pay another call"
            )
            return Outcome("exhausted", {}, why)

    def _config(self, condition: C, services: Services) -> RunnableConfig:
        """The name, tags and metadata of a run's trace."""
        from langsmith.utils import tracing_is_enabled

        # LangGraph copies metadata several times a step.
        values = condition.model_dump(mode="json") if tracing_is_enabled() else {}
        simple = {name: value for name, value in values.items() if isinstance(value, str | int | float | bool)}
        named: RunnableConfig = {"run_id": services.trace} if services.trace else {}
        return {
            **named,
            "run_name": " ".join((self.name, *condition.labels[:2], services.run_id)),
            "tags": ["labmates", self.name, *condition.labels],
            "metadata": {**simple, "run": services.run_id, "condition": services.key, "seed": services.seed},
        }

    @property
    def headline(self) -> tuple[str, ...]:
        """The metrics that tables of runs show, the primary outcome first."""
        chosen = [metric.name for metric in self.metrics if metric.headline]
        return tuple(sorted(chosen or [metric.name for metric in self.metrics[:3]], key=self.primary.__ne__))

    @property
    def primaries(self) -> tuple[str, ...]:
        """The primary outcome, and the metrics that state it on another scale."""
        return (self.primary, *(metric.name for metric in self.metrics if metric.same_as == self.primary))

    def domains(self, condition: Mapping[str, Any]) -> Mapping[str, Domain]:
        """The values that metrics can take in runs of a condition, given as plain data."""
        return {metric.name: metric.domain_in(condition) for metric in self.metrics}

    def domain_of(self, metric: str, runs: Sequence[RunRecord]) -> Domain:
        """The values that a metric can take in any of these runs."""
        return next((each.domain_of(runs) for each in self.metrics if each.name == metric and runs), ANY)

    @property
    def spread(self) -> Mapping[str, float]:
        """Expected standard deviations of metrics among runs of one condition, where they are known."""
        return {metric.name: metric.spread for metric in self.metrics if metric.spread is not None}


EXPERIMENTS: Registry[Experiment[Any]] = Registry("kind", "labmates.experiments")
"""All experiments by name."""


def condition_of(run: RunRecord) -> Condition:
    """The condition of a stored run.

    Raises
    ------
    UsageError
        If this labmates does not know such a condition.
    """
    try:
        model: type[Condition] = EXPERIMENTS.get(run.kind).condition
        return _condition(model, json.dumps(run.condition))
    except ValidationError as error:
        raise UsageError(
            f"the condition of the run '{run.id}' is from another version of labmates: {explain(error)}"
        ) from error


@lru_cache(maxsize=64)  # the runs of a condition follow one another
def _condition(model: type[Condition], values: str) -> Condition:
    return model.model_validate(json.loads(values))


def flat_condition(kind: str, condition: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a condition: those of nested objects joined by dots, those from files by their names."""
    described = EXPERIMENTS.get(kind).described if kind in EXPERIMENTS else dict
    row: dict[str, Any] = {}
    for name, value in described(condition).items():
        flatten(name, value["name"] if isinstance(value, Mapping) and "name" in value else value, row)
    return row


def make_condition(
    kind: str, values: Mapping[str, Any], names: Callable[[str], str] = str, *, catalog: Catalog | None = None
) -> Condition:
    """The condition of a kind of experiment.

    Parameters
    ----------
    names
        How fields are called in an error.
    catalog
        Resolves the models, and collects how they are reached.

    Raises
    ------
    UsageError
        If the kind is unknown, or a value is missing, unknown, out of bounds or without an effect.
    """
    model = EXPERIMENTS.get(kind).condition
    try:
        condition: Condition = model.model_validate(dict(values), context=catalog)
    except ValidationError as error:
        for fault in error.errors():
            if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
                unknown = names(str(fault["loc"][0]))
                raise unknown_name(f"parameter of {kind}", unknown, map(names, model.model_fields)) from error
        raise UsageError(explain(error, names)) from error
    for name, why in condition.without_effect(values).items():
        raise UsageError(f"{names(name)}: {why}; leave it out")
    return with_bill(condition, catalog)


ConditionT = TypeVar("ConditionT", bound=Condition)


def with_bill(condition: ConditionT, catalog: Catalog | None) -> ConditionT:
    """A condition whose pool charges the bill with what the providers charge in its price list.

    Raises
    ------
    UsageError
        If the price of one of its models is unknown.
    """
    prices: PriceList | None = getattr(condition, "prices", None)
    if catalog is None or prices is None or prices.credits != "bill":
        return condition
    from labmates.models.endpoints import known_price

    models = {model: known_price(model, catalog.options(model)) for model in condition.models()}
    if missing := [model for model, price in models.items() if price is None]:
        raise UsageError(
            f"prices: the pool charges the bill, but the price of {missing[0]} is unknown; give it, for instance "
            "MODEL?price.input=0.1&price.output=0.4"
        )
    filled = prices.model_copy(update={"models": {**models, **prices.models}})
    return condition.model_copy(update={"prices": filled})
