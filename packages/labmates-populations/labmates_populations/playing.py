"""Context of runs in which strategies play: the strategies, the workers that play them, and the record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from labmates.errors import UsageError
from labmates.records.events import ArtifactEvent, WarningEvent
from labmates.stats.validity import MOST_FAILED
from labmates.workflows.calls.stop_signal import StoppedError
from labmates.workflows.protocol.services import Services
from labmates_populations.condition import PopulationCondition
from labmates_populations.engine.crew import Strategies
from labmates_populations.engine.library import Population
from labmates_populations.engine.workers import Batch, Cost, Errors, Result, total_costs

_MOST_WARNINGS = 50
WAYS_STEP: Final = "ways"
"""The step and the artifact of how strategies were played."""

C = TypeVar("C", bound=PopulationCondition)


@dataclass(frozen=True)
class Arena(Generic[C]):
    """The context of a run."""

    condition: C
    services: Services
    strategies: Strategies
    costs: dict[str, Cost] = field(default_factory=dict)
    """Of all decisions so far, by the way to play."""

    @property
    def population(self) -> Population:
        """The strategies that take part."""
        return self.strategies.population

    def play(self, batches: Sequence[Batch]) -> list[Result]:
        """Play batches of games, blocking the thread; a `StoppedError` if the run should stop."""
        try:
            results = self.strategies.play(batches, self._is_stopped)
        except InterruptedError as error:
            raise StoppedError("stopped") from error
        for way, cost in total_costs(results).items():
            self.costs[way] = self.costs.get(way, Cost()) + cost
        return results

    def record_ways(self) -> None:
        """Record how each strategy was played, why, and what a decision took that was played like this."""
        population, recorder = self.population, self.services.recorder
        if recorder.done("artifact", WAYS_STEP) is None:
            seconds = {way: cost.microseconds / 1e6 for way, cost in self.costs.items()}  # of a decision
            body = {"ways": dict(population.ways), "whys": dict(population.whys), "seconds": seconds}
            content = recorder.bodies.keep(body)
            recorder.emit(ArtifactEvent(step=WAYS_STEP, name=WAYS_STEP, version=1, content=content))

    def _is_stopped(self) -> bool:
        return self.services.stop_signal is not None and self.services.stop_signal.pulled.is_set()

    def warn_of_errors(self, errors: Mapping[int, Errors]) -> None:
        """Record the first error of each strategy."""
        names = self.population.names
        for index, error in sorted(errors.items()):
            where = "when it was made" if error.round < 0 else f"in round {error.round}"
            self.warn(f"errors/{names[index]}", [f"{names[index]} failed {where}: {error.what}"])

    def warn(self, step: str, texts: Sequence[str]) -> None:
        """Record each warning once, up to a limit."""
        recorder = self.services.recorder
        known = sum(isinstance(event, WarningEvent) for event in recorder.events)
        for number, text in enumerate(texts):
            if known + number < _MOST_WARNINGS:
                recorder.once(WarningEvent(step=f"{step}/{number}", text=text))


@asynccontextmanager
async def open_arena(condition: C, services: Services) -> AsyncIterator[Arena[C]]:
    """The context of a run; how strategies were played is recorded at its end."""
    if services.shared is None or condition.digest is None:
        raise UsageError("this session has no workers for strategies")
    wanted = condition.strategies, condition.game, *condition.chosen
    strategies: Strategies = await asyncio.to_thread(services.shared.open, wanted, condition.digest)
    arena = Arena(condition, services, strategies)
    population = strategies.population
    arena.warn("refused", [f"{name} is left out: {problems[0]}" for name, problems in population.refused.items()])
    faulty = [f"{name} has problems by an earlier check: {found[0]}" for name, found in population.faulty.items()]
    arena.warn("faulty", faulty)
    yield arena
    arena.record_ways()


def invalid_strategies(metrics: Mapping[str, float]) -> str | None:
    """Why a run is invalid, if more than `MOST_FAILED` of the strategies' decisions failed; else None."""
    rate = metrics["error_rate"]
    if rate <= MOST_FAILED:
        return None
    return f"{rate:.0%} of the strategies' decisions failed (at most {MOST_FAILED:.0%} may)"
