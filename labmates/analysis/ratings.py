"""Ratings of models in social dilemmas: mean, fitness and deviation rating of each cell, and their means over runs.

A cell is one game under one mechanism in one run. Where co-players are drawn anew in every round (reputation) there is
no metagame, and a cell has means alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labmates.analysis.deviation import deviation_ratings, ranks
from labmates.analysis.metagame import Array, mean_payoffs
from labmates.analysis.replicator import replicator_dynamics

ALL_GAMES = "all"
LEVEL, RESAMPLES = 0.95, 10_000


@dataclass(frozen=True)
class Scale:
    """What makes payoffs of different games comparable: each player's payoff when all defect and when all cooperate."""

    defect: float
    cooperate: float

    def normalise(self, payoffs: Array) -> Array:
        """Return payoffs as shares of the way from defection (0) to cooperation (1)."""
        return np.asarray((payoffs - self.defect) / (self.cooperate - self.defect))


@dataclass(frozen=True)
class Cell:
    """What was played in one run of one game under one mechanism.

    Attributes
    ----------
    payoffs
        The metagame; or, where there is none, the mean payoff of each model, shape ``(models,)``.
    scale
        None for a game that has no cooperative play.
    """

    run: str
    mechanism: str
    game: str
    models: tuple[str, ...]
    payoffs: Array
    scale: Scale | None = None


@dataclass(frozen=True)
class Rated:
    """The ratings of a cell, each of shape ``(models,)`` in the order of its models; None without a metagame.

    Attributes
    ----------
    mean
        Payoff over all seatings.
    fitness
        Payoff against the population after replicator dynamics, which is `population`.
    deviation, rank
        Deviation rating, and the rank that it gives (1 is best).
    average_fitness
        What that population gets on average.
    """

    cell: Cell
    mean: Array
    fitness: Array | None = None
    population: Array | None = None
    deviation: Array | None = None
    rank: Array | None = None
    average_fitness: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the ratings as JSON data; ``normalised`` has mean and fitness with 0 all defect, 1 all cooperate."""
        cell, arrays = self.cell, ("mean", "fitness", "population", "deviation", "rank")
        values: dict[str, Any] = {name: _listed(getattr(self, name)) for name in arrays}
        normalised = None
        if cell.scale is not None:
            both = {"mean": self.mean, "fitness": self.fitness}
            normalised = {
                name: None if values is None else _listed(cell.scale.normalise(values)) for name, values in both.items()
            }
        return {
            "run": cell.run,
            "mechanism": cell.mechanism,
            "game": cell.game,
            "models": list(cell.models),
            **values,
            "average_mean": float(self.mean.mean()),
            "average_fitness": self.average_fitness,
            "normalised": normalised,
        }


@dataclass(frozen=True)
class Interval:
    """A mean over runs, its standard error (None for one run) and its bootstrap interval (None for one run)."""

    value: float
    error: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Summary:
    """A rating of every model over the runs of one game under one mechanism, or over all games together.

    Attributes
    ----------
    game
        `ALL_GAMES` for the mean over games; values are then normalised.
    rating
        ``mean``, ``fitness`` or ``rank``; also ``deviation`` for a single game.
    normalised
        Whether values are normalised.
    average
        Of all models; for fitness, of the final population.
    """

    mechanism: str
    game: str
    models: tuple[str, ...]
    rating: str
    normalised: bool
    runs: int
    each: tuple[Interval, ...]
    average: Interval


def rate(cell: Cell) -> Rated:
    """Return the ratings of a cell."""
    if cell.payoffs.ndim == 1:
        return Rated(cell, cell.payoffs)
    dynamics = replicator_dynamics(cell.payoffs)
    deviation = deviation_ratings(cell.payoffs)
    return Rated(
        cell,
        mean_payoffs(cell.payoffs),
        dynamics.fitness,
        dynamics.population,
        deviation,
        ranks(deviation),
        dynamics.average,
    )


def summarise(rated: Iterable[Rated], *, seed: int = 0) -> list[Summary]:
    """Return every rating over the runs of each game under each mechanism, and over all games of each mechanism.

    Over all games, mean and fitness are normalised before games are averaged. Intervals are of 95 %, by bootstrap: runs
    are drawn anew within each game.

    Parameters
    ----------
    seed
        Seed of the bootstrap.
    """
    groups: dict[tuple[str, tuple[str, ...]], dict[str, list[Rated]]] = {}
    for one in rated:
        groups.setdefault((one.cell.mechanism, one.cell.models), {}).setdefault(one.cell.game, []).append(one)
    found: list[Summary] = []
    for (mechanism, models), games in groups.items():
        for game, of_game in games.items():
            for rating in ("mean", "fitness", "deviation", "rank"):
                values = _values(of_game, rating)
                if values is not None:
                    found.append(_summary((mechanism, game, models, rating, False), [values], seed))
        comparable = [of_game for of_game in games.values() if of_game[0].cell.scale is not None]
        for rating in ("mean", "fitness", "rank"):
            each = [_values(of_game, rating, normalise=rating != "rank") for of_game in comparable]
            whole = [values for values in each if values is not None]
            if whole and len(whole) == len(each):
                found.append(_summary((mechanism, ALL_GAMES, models, rating, rating != "rank"), whole, seed))
    return found


def _values(rated: Sequence[Rated], name: str, *, normalise: bool = False) -> Array | None:
    """Return a rating of each run, shape ``(runs, models + 1)``; the last column is the average."""
    rows = []
    for one in rated:
        values: Array | None = getattr(one, name)
        if values is None:
            return None
        average = one.average_fitness if name == "fitness" else values.mean()
        row = np.array([*values, average], dtype=float)
        rows.append(one.cell.scale.normalise(row) if normalise and one.cell.scale is not None else row)
    return np.array(rows)


def _summary(what: tuple[str, str, tuple[str, ...], str, bool], games: Sequence[Array], seed: int) -> Summary:
    *each, average = _intervals(games, seed)
    return Summary(*what, min(len(values) for values in games), tuple(each), average)


def _intervals(games: Sequence[Array], seed: int) -> list[Interval]:
    """Return the mean over games of the mean over runs, column by column."""
    means = np.array([values.mean(axis=0) for values in games])
    value = means.mean(axis=0)
    if min(len(values) for values in games) < 2:
        return [Interval(float(one), None, None, None) for one in value]
    error = np.sqrt(sum(values.var(axis=0, ddof=1) / len(values) for values in games)) / len(games)
    low, high = bootstrap(games, lambda drawn: np.mean([values.mean(axis=1) for values in drawn], axis=0), seed=seed)
    return [Interval(*map(float, one)) for one in zip(value, error, low, high, strict=True)]


def bootstrap(
    samples: Sequence[Array],
    statistic: Callable[[Sequence[Array]], Array],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> tuple[Array, Array]:
    """Return the percentile interval of a statistic of independent samples.

    Parameters
    ----------
    samples
        Each of shape ``(observations, ...)``; observations are drawn anew within each.
    statistic
        Takes the drawn samples, each of shape ``(resamples, observations, ...)``, and returns the statistic of each
        resample, shape ``(resamples, ...)``.
    """
    rng = np.random.default_rng(seed)
    drawn = [values[rng.integers(len(values), size=(resamples, len(values)))] for values in samples]
    low, high = np.quantile(statistic(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _listed(values: Array | None) -> list[float] | None:
    return None if values is None else [float(value) for value in values]
