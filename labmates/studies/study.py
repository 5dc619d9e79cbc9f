"""Studies in the store: insertion of their runs, and the worker that executes them."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from labmates.budgets.money import format_dollars
from labmates.budgets.prices import Price, PriceList, usual_prices
from labmates.budgets.tokens import TEMPLATE_TOKENS
from labmates.errors import UsageError
from labmates.judges.panel import make_panel
from labmates.models.catalog import Catalog
from labmates.models.endpoints import known_price
from labmates.models.names import parse_model
from labmates.records.claims import Claims
from labmates.records.entering import Cell, Planned, enter_study, runs_elsewhere
from labmates.records.run import RunRecord
from labmates.records.steps import LeaseLostError
from labmates.records.store import Store
from labmates.records.studies import StudyRecord, study_counts, study_record
from labmates.studies.execution import OpenSession, Watch
from labmates.studies.made import check_study_made
from labmates.studies.runs import check_study_salt, new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.studies.spec import StudySpec, checked_conditions, each_cell, full_catalog
from labmates.util.bounded_yaml import Source
from labmates.util.loops import to_its_end
from labmates.workflows.calls.stop_signal import StopSignal
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition

_POLL_SECONDS = 1.0
_JUDGE_TOKENS = (160_000, 8_000)
"""Input and output tokens of one model judge per run that a cap sets aside, with 100,000 for the reservation of the
longest prompt beyond its tokens."""
_BEYOND_ESTIMATES = 250_000
"""Input tokens of a pool's last calls beyond their estimates."""
_AT_ONCE = 8
"""Concurrent calls of a run without a pool when its bound is nearly spent."""
_BYTES_PER_TOKEN = 5


@dataclass(frozen=True)
class Entered:
    """A study in the store, with its numbers of conditions, of runs and of new runs."""

    spec: StudySpec
    conditions: int
    runs: int
    new: int


def enter(
    store: Store, spec: StudySpec, source: Source | None = None, *, watch: Callable[[int], None] | None = None
) -> Entered:
    """Insert a study into the store, extend it, or complete an interrupted insertion.

    `watch` receives the number of runs examined. Raises `UsageError` if the study is invalid, its cap can't pay one
    run, its bound can't pay a run's budget, its runs were started with another seed or salt or with other prompts,
    rules or code, or another study holds runs of an unnamed study.
    """
    cells = _Cells(spec, source)
    if faults := list(_money_faults(spec, cells)):
        raise (source or Source(spec.name, {}, {})).error(faults)
    check_study_salt(store, spec.name)
    if source is not None and ("name",) not in source.lines:
        _check_renamed(store, spec, cells)
    record = StudyRecord(spec.name, spec.model_dump(mode="json"), spec.cap, time.time())
    runs, new = enter_study(store, record, cells.first, cells.planned(), cells.wants, seed=spec.seed, watch=watch)
    check_study_made(store, spec.name, allow=spec.allow_mixed)
    return Entered(spec, len(cells.keys), runs, new)


def _check_renamed(store: Store, spec: StudySpec, cells: _Cells) -> None:
    """Refuse to repeat another study's runs under a name that is only that of the file: it may have been renamed."""
    elsewhere = runs_elsewhere(store, spec.name, cells.wants, spec.seed)
    for other, number in elsewhere.most_common(1):
        raise UsageError(
            f"study {other} holds {number:,} of these {len(cells.keys) * spec.replicates:,} runs; {spec.name}, named "
            f"after its file, would execute them again: write 'name: {other}' into the file to resume that study, or "
            f"'name: {spec.name}' for a new one"
        )


class _Cells:
    """The validated conditions of a study, in little memory.

    `keys` are their keys as integers, `first` is the first run, `least` the smallest bound of a run and `pool` the
    largest budget (micro-dollars); `asks_models` tells whether models take part.
    """

    def __init__(self, spec: StudySpec, source: Source | None) -> None:
        self._spec, self._source = spec, source
        self._catalog = full_catalog(spec, source)
        self._bound = Bound(spec, self._catalog)
        self.keys: set[int] = set()
        self.pool = 0
        self.asks_models = False
        costs: set[int] = set()
        first: Condition | None = None
        for _, condition, _ in each_cell(spec, source, self._catalog, self.keys):
            first = first or condition
            costs.add(self._bound.of(condition))
            self.pool = max(self.pool, condition.pool or 0)
            self.asks_models = self.asks_models or bool(condition.models())
        assert first is not None  # a grid has a cell
        self.least = min(costs)
        settings = spec.settings(self._catalog)
        [self.first] = new_runs(first, seed=spec.seed, replicates=1, settings=settings, study=spec.name)

    def wants(self, key: str, replicate: int) -> bool:
        """Whether a run is one of the study."""
        return replicate < self._spec.replicates and int(key, 16) in self.keys

    def planned(self) -> Iterator[Planned]:
        """Yield the study's runs by condition; the conditions are made again, as they take less time than memory.

        In the queue, all first replicates precede all second ones: a stopped study is a complete, smaller study.
        """
        seed, conditions = self._spec.seed, len(self.keys)
        each = each_cell(self._spec, self._source, self._catalog, set())
        for number, (key, condition, values) in enumerate(each):
            cell = Cell(key, self._bound.of(condition), json.dumps(condition.models()), json.dumps(values))
            for replicate in range(self._spec.replicates):
                yield Planned(cell, replicate, seed + replicate, replicate * conditions + number)


def _money_faults(spec: StudySpec, cells: _Cells) -> Iterator[tuple[tuple[str, ...], str]]:
    if spec.bound is not None and spec.bound < cells.pool:
        text = f"${format_dollars(spec.bound)} can't pay a run's budget of ${format_dollars(cells.pool)}"
        yield ("bound",), text
    if spec.cap is None:
        return
    if spec.cap < cells.least:
        text = f"${format_dollars(spec.cap)} can't pay one run: the cheapest may cost ${format_dollars(cells.least)}"
        yield ("cap",), text
    if spec.bound is None and EXPERIMENTS.get(spec.kind).estimate is None and cells.asks_models:
        yield ("cap",), f"the cost of a {spec.kind} run is unknown: set 'bound', the limit of one run"


_LONGEST_INPUT = 3
"""Maximum ratio of a prompt's length to the expected one, with replies that are sent back."""


Charged = Callable[[str], Price | None]
"""The provider's price of a model; None if unknown."""


class Bound:
    """The maximum cost of a study's runs, judges included; without a `catalog` of connections, prices are unknown."""

    def __init__(self, spec: StudySpec, catalog: Catalog | None = None) -> None:
        self._bound = spec.bound
        self._catalog = catalog
        self.charged: Charged = cache(self._charged)
        settings = spec.settings(catalog or spec.catalog())
        self._judges = make_panel(settings.judges, settings.extractor).models

    def of(self, condition: Condition) -> int:
        """The bound of a run in micro-dollars; 0 if unknown."""
        if self._bound is not None:
            return self._bound
        prices: PriceList = getattr(condition, "prices", None) or usual_prices()
        judges = sum(self._price(judge, prices).worst_case.cost(*_JUDGE_TOKENS) for judge in self._judges)
        if condition.pool is None:
            worst_case = {model: self._price(model, prices).worst_case for model in condition.models()}
            return judges + _most_of_calls(condition, worst_case)
        charges = {model: self.charged(model) for model in condition.models()}
        dearer = max((_dearer(charged, prices.of(model)) for model, charged in charges.items()), default=Fraction(1))
        pool = math.ceil(condition.pool * dearer)
        known = (charged for charged in charges.values() if charged is not None)
        beyond = max((charged.worst_case.cost(_BEYOND_ESTIMATES, 0) for charged in known), default=0)
        return judges + pool + min(pool, beyond)

    def _charged(self, model: str) -> Price | None:
        if self._catalog is None or parse_model(model).scripted:
            return None
        return known_price(model, self._catalog.options(model))

    def _price(self, model: str, prices: PriceList) -> Price:
        return self.charged(model) or prices.of(model)


def _dearer(charged: Price | None, credits: Price) -> Fraction:
    """The maximum dollars per dollar of credits, at least 1."""
    if charged is None:
        return Fraction(1)
    inputs = [price for price in (credits.input, credits.cached, credits.cache_write) if price is not None]
    outputs = [price for price in (credits.output, credits.reasoning) if price is not None]
    pairs = ((charged.worst_case.input, min(inputs)), (charged.worst_case.output, min(outputs)))
    return max([Fraction(1), *(Fraction(real, credit) for real, credit in pairs if credit)])


def _most_of_calls(condition: Condition, worst_case: Mapping[str, Price]) -> int:
    """The maximum cost of a run without a budget: all calls at full length and with all repairs."""
    estimate = EXPERIMENTS.get(condition.kind).estimate
    if estimate is None:
        return 0
    expected = estimate(condition)
    tries = math.ceil(expected.calls) * (1 + getattr(condition, "repair_turns", 0))
    inputs = math.ceil(_LONGEST_INPUT * expected.input_tokens / max(1.0, expected.calls))
    calls = [price.cost(inputs, condition.longest_reply(model)) for model, price in worst_case.items()]
    # A call reserves a token for each byte of its prompt.
    at_once = min(tries, _AT_ONCE) * (_BYTES_PER_TOKEN * inputs // _LONGEST_INPUT + TEMPLATE_TOKENS)
    reserved = max([price.cost(at_once, 0) for price in worst_case.values()], default=0)
    return tries * max(calls, default=0) + reserved


def stored_spec(store: Store, name: str | None) -> StudySpec:
    """The newest plan of a study in the store; without a name, the only one.

    Raises `UsageError` if the study is missing, or the name is missing among several studies.
    """
    return StudySpec.model_validate(study_record(store, name).spec)


async def work_on(
    store: Store,
    spec: StudySpec,
    *,
    settings: RunSettings | None = None,
    stop_signal: StopSignal | None = None,
    watch: Watch | None = None,
    notify: Callable[[str], None] | None = None,
    wait: bool = True,
) -> int:
    """Execute runs of a study as one worker until no run is left, and return the number of runs that it ended.

    `settings` override the study's. The stop signal ends running runs at their next step. With `wait`, the worker stays
    while other workers hold runs, to take over abandoned ones. If a model takes no calls for hours, its runs are
    interrupted or stay in the queue; others go on.

    Raises `UsageError` before anything starts, if the runs can't be executed; `StoreError` if the store can't be
    written, so that the study can be resumed later.
    """
    await asyncio.to_thread(check_study_salt, store, spec.name)
    settings = settings or spec.settings()
    await asyncio.to_thread(check_study_made, store, spec.name, allow=settings.allow_mixed)
    stop_signal = stop_signal or StopSignal()
    session = Session(store, settings, watch=watch, notify=notify, stop_signal=stop_signal)
    async with session.opened(checked_conditions(spec, None, spec.catalog())) as lab:
        return await _Worker(store, spec, session.claims, lab, stop_signal, settings.max_concurrent_runs).work(wait)


@dataclass(eq=False)
class _Worker:
    store: Store
    spec: StudySpec
    claims: Claims
    lab: OpenSession
    stop_signal: StopSignal
    places: int  # runs at once
    running: set[asyncio.Task[bool]] = field(default_factory=set, init=False)
    held: dict[str, RunRecord] = field(default_factory=dict, init=False)
    ended: int = field(default=0, init=False)

    async def work(self, wait: bool) -> int:
        """Claim and execute runs until none is left."""
        stop = asyncio.create_task(self.stop_signal.pulled.wait())
        try:
            while not stop.done():
                claimed = await self._claim()
                if not claimed and not self.running and not (wait and await self._others_work()):
                    break
                await self._wait({*self.running, stop}, hungry=not claimed)
            while self.running:
                await self._wait(self.running)
        finally:
            for task in {*self.running, stop}:
                task.cancel()
            await asyncio.gather(*self.running, stop, return_exceptions=True)
            # Runs that were cancelled before they could record it.
            await to_its_end(asyncio.to_thread(self.claims.give_back, list(self.held.values())))
        return self.ended

    async def _claim(self) -> bool:
        """Claim and start runs for free places; False if none could be claimed."""
        free = self.places - len(self.running)
        # Several at a time, so that short runs don't cause a query each.
        if self.running and free < max(1, self.places // 8):
            return True

        services = self.lab.services
        paused = services.hub.paused
        if services.judging and not set(services.judging.panel.models).isdisjoint(paused):
            return False  # Work that can't be judged now would only be paid for earlier.

        def claim() -> list[RunRecord]:
            claimed = self.claims.next(self.spec.name, free, attempts=self.spec.attempts, without=paused)
            self.held |= {run.id: run for run in claimed}
            return claimed

        runs = await to_its_end(asyncio.to_thread(claim))
        self.running |= {asyncio.create_task(self._carry_out(run)) for run in runs}
        return bool(runs)

    async def _carry_out(self, run: RunRecord) -> bool:
        with suppress(LeaseLostError):
            await self.lab.carry_out(run)
            del self.held[run.id]
            return True
        del self.held[run.id]
        return False

    async def _wait(self, tasks: set[asyncio.Task[bool]], *, hungry: bool = False) -> None:
        """Wait until a run ends; if nothing could be claimed, only for `_POLL_SECONDS`."""
        patience = _POLL_SECONDS if hungry else None
        done, _ = await asyncio.wait(tasks, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        for task in done & self.running:
            self.running.discard(task)
            self.ended += task.result()

    async def _others_work(self) -> bool:
        counts = await asyncio.to_thread(study_counts, self.store, self.spec.name)
        return counts.of("running") > 0
