"""Cooperative profiles: how a model plays the behavioural games, game by game, with standard errors."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labmates.analysis.student import quantile
from labmates.analysis.tables import Column, Table
from labmates.records.run import ENDED, RunRecord

MOST_FAILED = 0.2
"""A model of which more decisions failed than this share is reported as excluded, as the paper on profiles does."""


@dataclass(frozen=True)
class Mean:
    """A mean over simulations; `error` is its standard error, None for a single simulation."""

    value: float
    error: float | None
    simulations: int

    @property
    def half(self) -> float | None:
        """Half the width of its 95 % interval, by Student's t; None for a single simulation."""
        return None if self.error is None else quantile(self.simulations - 1) * self.error


@dataclass(frozen=True)
class GameProfile:
    """How a model plays one game.

    Attributes
    ----------
    simulations
        Runs that have ended.
    conditions
        Under how many conditions they were played; of more than one the numbers are those of the mix.
    level
        The primary metric; None if no decision could be used. So are the others where they are not defined.
    pareto_proximity, welfare_proximity
        See `labmates.analysis.proximity`.
    failed_rate
        Share of decisions for which no reply could be used.
    calls, input_tokens, output_tokens, seconds
        Of a simulation, on average.
    cost
        Of all simulations, in micro-dollars.
    """

    game: str
    simulations: int
    conditions: int
    level: Mean | None
    pareto_proximity: Mean | None
    welfare_proximity: Mean | None
    failed_rate: float
    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float
    cost: int


@dataclass(frozen=True)
class Profile:
    """A model's cooperative profile (cooperative-profiles paper, section 3.1)."""

    model: str
    games: tuple[GameProfile, ...]

    @property
    def failed_rate(self) -> float:
        """Share of decisions that failed, the mean over games."""
        return sum(one.failed_rate for one in self.games) / len(self.games)

    @property
    def excluded(self) -> bool:
        """Whether so many decisions failed that the profile says little of the model."""
        return self.failed_rate > MOST_FAILED


def profiles(runs: Iterable[RunRecord], costs: Mapping[str, int]) -> list[Profile]:
    """Return the profile of each model, out of runs of behavioural games; games in the order in which they come first.

    Runs with several models are left out, as are those that have not ended.

    Parameters
    ----------
    costs
        What each run has cost, in micro-dollars, by its id.
    """
    found: dict[str, dict[str, list[RunRecord]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.status in ENDED and len(run.models) == 1:
            found[run.models[0]][run.condition["game"]].append(run)
    return [
        Profile(model, tuple(_of_game(game, mine, costs) for game, mine in games.items()))
        for model, games in found.items()
    ]


def profiles_table(found: Sequence[Profile]) -> Table:
    """Return profiles, a row for each model and game."""
    rows: list[dict[str, Any]] = []
    for profile in found:
        for one in profile.games:
            row: dict[str, Any] = {"model": profile.model, "game": one.game, "simulations": one.simulations}
            for name in ("level", "pareto_proximity", "welfare_proximity"):
                row |= _cells(name, getattr(one, name))
            rows.append({**row, "failed_rate": one.failed_rate, "excluded": profile.excluded})
    columns = [
        Column("model", once=True),
        Column("game"),
        Column("simulations"),
        *(Column(name, form=".3f", shows="both") for name in ("level", "pareto_proximity", "welfare_proximity")),
        Column("failed_rate", "failed decisions", ".1%"),
    ]
    notes = [
        "Level: the game's primary metric. Proximity is 0 at the play that is best for all and 1 at the equilibrium. "
        "In brackets: 95 % intervals (Student's t)."
    ]
    if mixed := dict.fromkeys(one.game for profile in found for one in profile.games if one.conditions > 1):
        notes.append(f"Simulations under several conditions are taken together: {', '.join(mixed)}.")
    notes += [
        f"{profile.model} is excluded: more than {MOST_FAILED:.0%} of its decisions failed."
        for profile in found
        if profile.excluded
    ]
    return Table("profiles", "Cooperative profiles", columns, rows, notes)


def _cells(name: str, mean: Mean | None) -> dict[str, float | None]:
    """Return a mean with its error and its interval, under the names that they have in a row."""
    if mean is None:
        return dict.fromkeys((name, f"{name}_error", f"{name}_low", f"{name}_high"))
    low, high = (None, None) if mean.half is None else (mean.value - mean.half, mean.value + mean.half)
    return {name: mean.value, f"{name}_error": mean.error, f"{name}_low": low, f"{name}_high": high}


def mean_of(values: Iterable[float]) -> Mean | None:
    """Return mean and standard error; None without values."""
    numbers = list(values)
    n = len(numbers)
    if not n:
        return None
    mean = math.fsum(numbers) / n
    if n == 1:
        return Mean(mean, None, 1)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / (n - 1)
    return Mean(mean, math.sqrt(variance / n), n)


def _of_game(game: str, runs: list[RunRecord], costs: Mapping[str, int]) -> GameProfile:
    n = len(runs)

    def metric(name: str) -> Mean | None:
        return mean_of(run.metrics[name] for run in runs if name in run.metrics)

    return GameProfile(
        game=game,
        simulations=n,
        conditions=len({run.key for run in runs}),
        level=metric("level"),
        pareto_proximity=metric("pareto_proximity"),
        welfare_proximity=metric("welfare_proximity"),
        failed_rate=sum(run.metrics["failed_decision_rate"] for run in runs) / n,
        calls=sum(run.usage.llm_calls for run in runs) / n,
        input_tokens=sum(run.usage.input_tokens for run in runs) / n,
        output_tokens=sum(run.usage.output_tokens for run in runs) / n,
        seconds=sum(run.seconds for run in runs) / n,
        cost=sum(costs.get(run.id, 0) for run in runs),
    )
