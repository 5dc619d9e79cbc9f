"""One self-play, from its condition to its metrics. Each mixture is a step: what is recorded is not played again."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import cast

from labmates.records.events import PayoffEvent
from labmates.stats.intervals import Domain, mean
from labmates.workflows.experiment import Outcome
from labmates.workflows.populations.condition import SelfplayCondition
from labmates.workflows.populations.engine.selfplay import mixtures, play_mixture, select_genes
from labmates.workflows.populations.playing import blocking, invalid_strategies, open_strategies, warn_of_errors
from labmates.workflows.services import Services


async def execute(condition: SelfplayCondition, services: Services) -> Outcome:
    """Play all mixtures.

    Raises
    ------
    UsageError
        If the strategies are not there, or too few for a group.
    StoppedError
        If the run is to stop; what was played so far is recorded and can be gone on with.
    """
    game = condition.make_game()
    models = (condition.model,) if condition.model else ()
    attitudes = condition.collective, condition.selfish
    strategies = await open_strategies(services, condition, models, attitudes)
    genes = select_genes(strategies.population, attitudes)
    recorder, found = services.recorder, []
    for selfish in mixtures(condition.group_size, condition.step):
        step = f"mixture/{selfish}"
        event = cast(PayoffEvent | None, recorder.done("payoff", step))
        if event is None:
            play = partial(
                play_mixture,
                *(game, strategies.population, blocking(services, strategies), genes, selfish),
                samples=condition.samples,
                seed=services.seed,
            )
            mixture = await asyncio.to_thread(play)
            warn_of_errors(services, strategies, mixture.errors)
            welfare = mean(mixture.groups, Domain(*game.bounds()))
            details = {
                "selfish": selfish,
                **{name: getattr(welfare, name) for name in ("low", "high", "n", "df", "method", "reason")},
                "cooperation": mixture.cooperation,
                "errors": sum(error.count for error in mixture.errors.values()),
                "model": genes[0].model,
            }
            event = PayoffEvent(step=step, match=step, payoffs={"welfare": welfare.value}, details=details)
            recorder.emit(event)
            await recorder.flush()
        found.append(event)
    means = [event.payoffs["welfare"] for event in found]
    decisions = len(found) * condition.samples * condition.group_size * condition.rounds
    ends = {"collective": means[0], "selfish": means[-1], "": sum(means) / len(means)}
    metrics = {f"welfare_{name}".rstrip("_"): value for name, value in ends.items()}
    metrics |= {f"efficiency_{name}".rstrip("_"): game.efficiency(value) for name, value in ends.items()}
    metrics["cooperation"] = sum(event.details["cooperation"] for event in found) / len(found)
    metrics["error_rate"] = sum(event.details["errors"] for event in found) / decisions
    return Outcome("completed", metrics, invalid_strategies(metrics))
