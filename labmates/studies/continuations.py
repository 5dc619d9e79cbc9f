"""Continuations of forks: what comes after an event, drawn several times with a change and without it.

The difference of the two is the effect of the change, free of the chance of one continuation. The origin itself is not
among them: it was chosen for how it ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.errors import UsageError
from labmates.models.endpoints import known_price
from labmates.records.events import LLMCallEvent
from labmates.records.run import ENDED, RunRecord
from labmates.records.steps import charges
from labmates.records.store import Store
from labmates.studies.fork import Branch, branch
from labmates.studies.plan import expected_bill
from labmates.studies.settings import RunSettings
from labmates.util.grouping import grouped
from labmates.util.seeds import MOST_REPLICATES
from labmates.workflows.analyses.compare import COMPARE
from labmates.workflows.analyses.compare_params import CompareParams
from labmates.workflows.analyses.matching import NONE, settings_of
from labmates.workflows.protocol.analysis import Result, Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import Estimate, condition_of

SettingsOf = Callable[[Mapping[str, Any]], RunSettings]
"""The settings for continuing a run with these settings."""


class Continuations:
    """Continuations 1 to `replicates` of each branch: those in the store, and those that are left to execute."""

    def __init__(self, store: Store, branches: Sequence[Branch], replicates: int) -> None:
        if not 1 <= replicates <= MOST_REPLICATES:
            raise UsageError(f"the number of replicates must be from 1 to {MOST_REPLICATES:,}, not {replicates}")
        self._store = store
        numbers = range(1, replicates + 1)
        self._all = {run.id: (run, each) for each, n in product(branches, numbers) for run in [each.continuation(n)]}
        ended = {run.id for run in self.ended()}
        self.left = [run for run, _ in self._all.values() if run.id not in ended]

    @property
    def price(self) -> int:
        """The expected bill of those left, in micro-dollars, by the tokens of their origins after the fork."""
        prices = {id(each): _price(each) for _, each in self._all.values()}
        return sum(prices[id(self._all[run.id][1])] for run in self.left)

    def plan(self) -> str:
        """What is left to execute, and its expected price, in words."""
        return f"{len(self.left)} of {len(self._all)} continuations to execute, for about {show_dollars(self.price)}"

    def most(self, cap: str | float) -> int:
        """The most that each of those left may cost under a cap in dollars, in micro-dollars.

        Raises `UsageError` if the cap is no amount, or the expected price is above it.
        """
        try:
            total = parse_dollars(cap)
        except ValueError as error:
            raise UsageError(f"the cap: {error}") from error
        if self.price > total:
            raise UsageError(
                f"{self.plan()}: more than the cap of {show_dollars(total)}; raise it, or ask for fewer replicates"
            )
        return total // max(1, len(self.left))

    def enter(self, most: int | None = None) -> list[tuple[RunSettings, list[RunRecord]]]:
        """Insert those left, and return them by their settings; each may cost `most` micro-dollars."""
        for run in self.left:
            each = self._all[run.id][1]
            bound = 0 if most is None else most + charges(each.first)
            self._store.create(replace(run, most=bound), events=each.first, bodies=each.bodies)
        by_settings = grouped((RunSettings.model_validate(run.settings).model_dump_json(), run) for run in self.left)
        return [(RunSettings.model_validate_json(text), runs) for text, runs in by_settings.items()]

    def ended(self) -> list[RunRecord]:
        """Those in the store that have ended, by branch and number."""
        keys = list({run.key for run, _ in self._all.values()})
        ended = {run.id: run for run in self._store.runs(keys=keys) if run.status in ENDED}
        return [ended[run_id] for run_id in self._all if run_id in ended]


async def both_arms(
    store: Store, run_ids: Sequence[str], *, at: int | str, changes: Mapping[str, Any], settings: SettingsOf
) -> list[Branch]:
    """The branches of runs with a change and without it.

    Raises `UsageError` as `labmates.studies.fork.branch` does.
    """
    branches = []
    for run_id in dict.fromkeys(run_ids):
        origin = await asyncio.to_thread(store.run, run_id)
        make = partial(branch, store, origin.id, at=at, settings=settings(origin.settings))
        branches += [await make(changes=changes), await make(changes=None)]
    return branches


def _price(each: Branch) -> int:
    replies = [event for event in each.rest if isinstance(event, LLMCallEvent)]
    calls = [reply for reply in replies if reply.type == "llm_call"]
    tokens = (sum(call.input_tokens for call in calls), sum(call.output_tokens for call in calls))
    expected = Estimate(len(calls), *tokens, 0)
    models = RunSettings.model_validate(each.run.settings).models
    judges = sum(reply.cost for reply in replies if reply.type == "judge_call")
    return judges + expected_bill(condition_of(each.run), expected, lambda model: known_price(model, models))


def effect(forks: Sequence[RunRecord], branches: Sequence[Branch], store: Store) -> Result:
    """What the continuations of `both_arms` tell of the change.

    Raises `TooFewRunsError` if they are too few to compare.
    """
    if not forks:
        raise TooFewRunsError("no continuation has ended")
    settings = [settings_of(each.run) for each in branches[:2]]
    names = [name for name in {**settings[0], **settings[1]} if len({each.get(name) for each in settings}) > 1]
    # A condition is no place for a value with a comma.
    name = next((name for name in names if "," not in settings[0].get(name, "")), "")
    value = settings[0].get(name, NONE)
    conditions = (f"with the change:{name}={value}", f"without it:{name}!={value}")
    params = CompareParams(conditions=conditions) if name else CompareParams(by=tuple(names[:1]))
    return COMPARE.result(Runs.given(store, forks), params)
