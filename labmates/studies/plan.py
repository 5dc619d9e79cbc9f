"""The plan of a study: estimated runs, calls, tokens, dollars and hours."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from statistics import fmean, stdev
from typing import Any, Literal

from labmates.budgets.money import format_dollars
from labmates.budgets.prices import PriceList, usual_prices
from labmates.errors import UsageError
from labmates.models.names import is_own_baseline
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import ended_replicates, study_counts
from labmates.registry import look_at_all
from labmates.stats.domains import COUNT
from labmates.stats.intervals import FEWEST_OF_LOGS, interval
from labmates.studies.designs import PLANS, Findable, PlannedRuns
from labmates.studies.spec import StudySpec, each_condition, full_catalog
from labmates.studies.study import Bound, Charged
from labmates.util.bounded_yaml import Source
from labmates.util.grouping import grouped
from labmates.workflows.analyses.matching import costs
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Estimate, condition_of

_log = logging.getLogger(__name__)
_MOST_MEASURED = 5000
_MOST_COMPARED = 500  # conditions whose comparisons are simulated

_SIZES = ("calls", "input_tokens", "output_tokens", "seconds")

Basis = Literal["measured", "measured of other models", "assumed"]


@dataclass(frozen=True)
class ModelPlan:
    """The estimate for the remaining runs of one model (or mix of models)."""

    model: str
    runs: int
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: int  # expected cost, judges excluded, in micro-dollars
    low_dollars: int | None  # its 95 % interval, from the spread of the model's measured runs; else None
    high_dollars: int | None
    most_dollars: int  # maximum cost, judges included, in micro-dollars
    hours: float  # duration at the study's concurrency
    basis: Basis  # runs of the same model in the store, runs of other models, or the kind's assumption


@dataclass(frozen=True)
class Plan:
    """The plan of a study."""

    name: str
    conditions: int
    replicates: int
    runs: int
    done: int  # ended runs
    cap: int | None  # spending cap, in micro-dollars
    spent: int  # cost so far, in micro-dollars
    models: tuple[ModelPlan, ...]  # the remaining runs, by model
    detectable: tuple[Findable, ...]

    def total(self) -> ModelPlan:
        """The sum over all models."""
        add = {
            name: sum(getattr(model, name) for model in self.models)
            for name in ("runs", "calls", "input_tokens", "output_tokens", "dollars", "most_dollars", "hours")
        }
        low, high = (_end(self.models, name) for name in ("low_dollars", "high_dollars"))
        return ModelPlan(model="all", basis="assumed", low_dollars=low, high_dollars=high, **add)

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON data; amounts are dollars as decimal strings."""
        models = [
            {name: _money(value) if name.endswith("dollars") else value for name, value in asdict(plan).items()}
            for plan in self.models
        ]
        amounts = {"cap": _money(self.cap), "spent": format_dollars(self.spent)}
        found = [each.as_json() for each in self.detectable]
        return asdict(replace(self, detectable=())) | amounts | {"models": models, "detectable": found}


def _money(amount: int | None) -> str | None:
    return None if amount is None else format_dollars(amount)


def _end(models: Sequence[ModelPlan], name: str) -> int | None:
    """An end of the interval of the dollars of all models, which vary independently; None if one has no interval."""
    ends = [getattr(each, name) for each in models]
    if None in ends:
        return None
    total = sum(each.dollars for each in models)
    reach = math.hypot(*(end - each.dollars for end, each in zip(ends, models, strict=True)))
    return round(total + (reach if name == "high_dollars" else -reach))


def make_plan(
    spec: StudySpec,
    store: Store | None,
    source: Source | None = None,
    *,
    compared: str | None = None,
    difference: float | None = None,
) -> Plan:
    """The plan of a study, with measurements from runs of its kind in the `store`; `source` gives errors their line.

    `compared` is ``compare PARAMETER``, of which alone power is planned, and what it needs to find a `difference`; see
    `labmates.studies.designs.PLANS`. Raises `UsageError` if a combination of parameters is not a condition, there are
    far too many, or `compared` is not what the study compares.
    """
    name, _, parameter = (compared or "").partition(" ")
    finders = [PLANS.get(name)] if compared else look_at_all(PLANS, PLANS.get, _log.warning).values()
    runs: list[RunRecord] = []
    done: set[tuple[str, int]] = set()
    spent = 0
    if store is not None:
        with closing(store.runs(kind=spec.kind)) as stored:
            runs = list(islice(stored, _MOST_MEASURED))
        done = ended_replicates(store, spec.name)
        spent = study_counts(store, spec.name).spent
    ended = [run for run in runs if run.status in ENDED]
    by_models = grouped((" + ".join(run.models), run) for run in ended)
    catalog = full_catalog(spec, source)
    bound = Bound(spec, catalog)
    by_model: dict[str, _Needs] = {}
    number = 0
    planned: list[RunRecord] = []
    for key, condition in each_condition(spec, source, catalog):
        left = spec.replicates - sum((key, replicate) in done for replicate in range(spec.replicates)) if done else None
        model = " + ".join(condition.models())
        if model not in by_model:
            by_model[model] = _Needs(spec, *_measured(by_models, condition))
        by_model[model].add(condition, spec.replicates if left is None else left, bound)
        number += 1
        if number <= _MOST_COMPARED:
            values = condition.model_dump(mode="json")
            planned.append(RunRecord(key, spec.kind, key, 0, 0, values, condition.models()))
    runs_in_all = number * spec.replicates
    models = tuple(needs.plan(model) for model, needs in by_model.items())
    left = sum(each.runs for each in models)
    price = sum(each.dollars for each in models) / left * runs_in_all if left else 0.0
    design = PlannedRuns(spec, ended, planned if number <= _MOST_COMPARED else (), price)
    asked = None if compared is None else parameter
    return Plan(
        name=spec.name,
        conditions=number,
        replicates=spec.replicates,
        runs=runs_in_all,
        done=runs_in_all - left,
        cap=spec.cap,
        spent=spent,
        models=models,
        detectable=tuple(each for find in finders for each in find(design, asked, difference)),
    )


def _measured(by_models: Mapping[str, Sequence[RunRecord]], condition: Condition) -> tuple[Sequence[RunRecord], Basis]:
    """Runs of a condition's models, or else of other models; baselines only from baselines."""
    if own := by_models.get(" + ".join(condition.models())):
        return own, "measured"
    is_own = all(map(is_own_baseline, condition.models()))
    alike = [run for runs in by_models.values() for run in runs if all(map(is_own_baseline, run.models)) == is_own]
    return alike, "measured of other models" if alike else "assumed"


def _assumed(runs: Sequence[RunRecord]) -> Estimate | None:
    """The means that the kind assumes for the conditions of runs; None if it assumes none, or can't read them."""
    kind = EXPERIMENTS.get(runs[0].kind)
    if kind.estimate is None:
        return None
    try:
        return _mean(kind.estimate(condition_of(run)) for run in runs)
    except UsageError:
        return None


def _mean(usages: Iterable[Estimate]) -> Estimate:
    each = list(usages)
    means: dict[str, Any] = {name: fmean(getattr(usage, name) for usage in each) for name in _SIZES}
    return Estimate(**means)


def _used(run: RunRecord) -> Estimate:
    return Estimate(run.usage.llm_calls, run.usage.input_tokens, run.usage.output_tokens, run.seconds)


class _Needs:
    """The estimate for the remaining runs of one model, summed over conditions; `runs` are those to measure."""

    def __init__(self, spec: StudySpec, runs: Sequence[RunRecord], basis: Basis) -> None:
        self._spec = spec
        self._basis: Basis = basis
        self._measured = _mean(map(_used, runs)) if runs else None
        self._alike = _assumed(runs) if runs else None
        self._costs = _costs(runs) if basis == "measured" else []
        self.runs = 0
        self._sums = Counter[str]()

    def add(self, condition: Condition, left: int, bound: Bound) -> None:
        """Add runs of a condition."""
        expected = _expected(condition, self._measured, self._alike)
        amounts = {"dollars": expected_bill(condition, expected, bound.charged), "most_dollars": bound.of(condition)}
        each = {name: getattr(expected, name) for name in _SIZES} | amounts
        self.runs += left
        self._sums.update({name: left * amount for name, amount in each.items()})

    def plan(self, model: str) -> ModelPlan:
        """The sum."""
        at_once = min(max(self.runs, 1), self._spec.concurrency.max_concurrent_runs * self._spec.concurrency.workers)
        low, high = self._ends()
        sums = {name: round(amount) for name, amount in self._sums.items() if name != "seconds"}
        hours = self._sums["seconds"] / at_once / 3600
        return ModelPlan(
            model=model, runs=self.runs, low_dollars=low, high_dollars=high, hours=hours, basis=self._basis, **sums
        )

    def _ends(self) -> tuple[int | None, int | None]:
        """The 95 % interval of the dollars: the mean of measured runs is uncertain, and each further run varies."""
        n, dollars, most = len(self._costs), self._sums["dollars"], self._sums["most_dollars"]
        if n < FEWEST_OF_LOGS or not any(self._costs) or not self.runs or not dollars:
            return None, None
        error = dollars * stdev(self._costs) / fmean(self._costs) * math.sqrt(1 / n + 1 / self.runs)
        low, high = interval(dollars, error, n - 1, COUNT, n=n).ends()
        return round(low), round(min(high, max(most, dollars)))


def _costs(runs: Sequence[RunRecord]) -> list[float]:
    """What each run took, in dollars, or in tokens if the dollars of one are unknown."""
    each = list(map(costs, runs))
    unit = "dollars" if all(cost.get("dollars") for cost in each) else "tokens"
    return [cost[unit] for cost in each]


def _expected(condition: Condition, measured: Estimate | None, alike: Estimate | None) -> Estimate:
    """The expected usage of a run of a condition, from the kind's assumption and measured runs of other conditions.

    If the kind knows the number of calls, the usage per call is measured. Else the usage per run is, times the ratio of
    what the kind assumes for the condition and for those runs (`alike`): a small trial run is not a large one.
    """
    kind = EXPERIMENTS.get(condition.kind)
    assumed = kind.estimate(condition) if kind.estimate else None
    exact = assumed is not None and assumed.exact
    if measured is None or (exact and not measured.calls):
        return assumed or Estimate(0, 0, 0, 0)
    if assumed is None:
        return measured
    if not exact:
        sizes = {name: (getattr(assumed, name), getattr(alike, name, 0)) for name in _SIZES}
        scaled = {
            name: getattr(measured, name) * (own / of_runs if of_runs else 1) for name, (own, of_runs) in sizes.items()
        }
        return replace(measured, **scaled)
    ratio = assumed.calls / measured.calls
    inputs, outputs, seconds = measured.input_tokens, measured.output_tokens, measured.seconds
    return replace(assumed, input_tokens=inputs * ratio, output_tokens=outputs * ratio, seconds=seconds * ratio)


def expected_bill(condition: Condition, expected: Estimate, charged: Charged) -> int:
    """The expected bill of a run, in micro-dollars, for equal shares of the tokens among its models.

    Unknown prices and baselines use the condition's price list. A run that needs more credits than its pool is scaled
    down to the pool.
    """
    prices: PriceList = getattr(condition, "prices", None) or usual_prices()
    models = condition.models()
    if not models:
        return 0
    inputs, outputs = (round(tokens / len(models)) for tokens in (expected.input_tokens, expected.output_tokens))
    bill = sum((charged(model) or prices.of(model)).cost(inputs, outputs) for model in models)
    if condition.pool is None:
        return bill
    credits = sum(prices.of(model).cost(inputs, outputs) for model in models)
    return bill if credits <= condition.pool else bill * condition.pool // credits
