"""How runs of kinds in which strategies written as code play are given these, and told what they did wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from labmates.errors import UsageError
from labmates.records.events import WarningEvent
from labmates.stats.validity import MOST_FAILED
from labmates.workflows.brake import StoppedError
from labmates.workflows.populations.condition import PopulationCondition
from labmates.workflows.populations.engine.crew import Strategies
from labmates.workflows.populations.engine.evolution import PlayBatches
from labmates.workflows.populations.engine.workers import Batch, Errors, Result
from labmates.workflows.services import Services

_MOST_WARNINGS = 50


async def open_strategies(
    services: Services, condition: PopulationCondition, models: tuple[str, ...], attitudes: tuple[str, ...]
) -> Strategies:
    """Return the strategies of a condition, with the workers that play them.

    Raises
    ------
    UsageError
        If they are not there, or not what they were.
    """
    if services.shared is None or condition.digest is None:
        raise UsageError("this session has no workers for strategies")
    wanted = condition.strategies, condition.game, models, attitudes
    found: Strategies = await asyncio.to_thread(services.shared.open, wanted, condition.digest)
    told = [f"{name} is left out: {problems[0]}" for name, problems in found.population.refused.items()]
    warn(services, "refused", told)
    return found


def blocking(services: Services, strategies: Strategies) -> PlayBatches:
    """Return what plays batches and leaves off when the run is to stop; to be called in a thread.

    It raises `StoppedError` then.
    """

    def stop() -> bool:
        return services.brake is not None and services.brake.pulled.is_set()

    def play(batches: Sequence[Batch]) -> list[Result]:
        try:
            return strategies.play(batches, stop)
        except InterruptedError as error:
            raise StoppedError("stopped") from error

    return play


def invalid_strategies(metrics: Mapping[str, float]) -> str | None:
    """Return why what strategies played can't be used: more of their decisions failed than `MOST_FAILED`."""
    rate = metrics["error_rate"]
    return (
        f"{rate:.0%} of the strategies' decisions failed (at most {MOST_FAILED:.0%} may)"
        if rate > MOST_FAILED
        else None
    )


def warn_of_errors(services: Services, strategies: Strategies, errors: Mapping[int, Errors]) -> None:
    """Record the first error of each strategy."""
    names = strategies.population.names
    for index, error in sorted(errors.items()):
        where = "when it was made" if error.round < 0 else f"in round {error.round}"
        warn(services, f"errors/{names[index]}", [f"{names[index]} failed {where}: {error.what}"])


def warn(services: Services, step: str, told: Sequence[str]) -> None:
    """Record warnings, each once; not without end."""
    known = sum(isinstance(event, WarningEvent) for event in services.recorder.events)
    for number, text in enumerate(told):
        if known + number < _MOST_WARNINGS:
            services.recorder.once(WarningEvent(step=f"{step}/{number}", text=text))
