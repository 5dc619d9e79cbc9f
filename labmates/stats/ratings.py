"""Ratings of models in social dilemmas: mean, fitness and deviation rating of each cell, and their means over runs.

A cell is one game under one mechanism in one run. With new co-players in every round (reputation) there is no metagame,
and a cell has only means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from labmates.stats.deviation import deviation_ratings, ranks
from labmates.stats.domains import ANY, Domain
from labmates.stats.intervals import Estimate, average, estimate
from labmates.stats.metagame import Array, mean_payoffs
from labmates.stats.pooled_ratings import mean_rank, pooled_ratings
from labmates.stats.replicator import RATE, STEPS, Dynamics, replicator_dynamics
from labmates.stats.samples import Sample, pooled
from labmates.stats.validity import Tally, total

ALL_GAMES = "all"


@dataclass(frozen=True)
class Scale:
    """A scale common to different games: each player's payoff at full defection and at full cooperation."""

    defect: float
    cooperate: float

    def normalise(self, payoffs: Array) -> Array:
        """Payoffs as shares of the way from defection (0) to cooperation (1)."""
        return np.asarray((payoffs - self.defect) / (self.cooperate - self.defect))


@dataclass(frozen=True)
class Evolution:
    """Parameters of the evolution of a population of models."""

    steps: int = STEPS
    rate: float = RATE

    def of(self, cell: Cell) -> Dynamics:
        """The evolution of a cell's models."""
        return replicator_dynamics(cell.payoffs, steps=self.steps, rate=self.rate)


@dataclass(frozen=True)
class Cell:
    """The payoffs of one run of one game under one mechanism.

    Attributes
    ----------
    payoffs
        The metagame, or without one the mean payoff of each model, shape ``(models,)``.
    scale
        None for a game without a cooperative profile.
    failures
        Failed decisions of each model; None if unknown, as in files of payoffs.
    left_out
        Models that played and are not rated, with their decisions.
    domain
        Of a player's payoff.
    """

    run: str
    mechanism: str
    game: str
    models: tuple[str, ...]
    payoffs: Array
    scale: Scale | None = None
    failures: Mapping[str, Tally] | None = None
    left_out: Mapping[str, Tally] = field(default_factory=dict)
    domain: Domain = ANY

    def failed(self, model: str) -> Tally | None:
        """The failed decisions of a model; None if unknown."""
        return None if self.failures is None else {**self.failures, **self.left_out}[model]


@dataclass(frozen=True)
class Rated:
    """The ratings of a cell, each of shape ``(models,)`` in the order of its models; None without a metagame.

    Attributes
    ----------
    mean
        Mean payoff over all seatings.
    fitness
        Payoff against `population`, the population after replicator dynamics.
    deviation, rank
        Deviation rating, and the resulting rank (1 is best).
    average_fitness
        Mean payoff in that population.
    converged
        Whether that population is at rest; see `labmates.stats.replicator.Dynamics`.
    """

    cell: Cell
    mean: Array
    fitness: Array | None = None
    population: Array | None = None
    deviation: Array | None = None
    rank: Array | None = None
    average_fitness: float | None = None
    converged: bool | None = None


@dataclass(frozen=True)
class Summary:
    """A rating of every model over the runs of one game under one mechanism, or over all games together.

    Attributes
    ----------
    game
        `ALL_GAMES` for the mean over games; values are then normalised.
    rating
        ``mean``, ``fitness`` or ``rank``; for a single game also ``deviation``.
    average
        Over models; for fitness, over the final population.
    failed
        Share of failed decisions of each model in all runs; None if unknown.
    left_out
        The same for models without ratings.
    unconverged
        For fitness, the number of cells with a population that is not at rest.
    """

    mechanism: str
    game: str
    models: tuple[str, ...]
    rating: str
    normalised: bool
    runs: int
    each: tuple[Estimate, ...]
    average: Estimate
    failed: tuple[float | None, ...]
    left_out: Mapping[str, float]
    unconverged: int = 0


EVOLUTION = Evolution()
"""The parameters of CoopEval."""


def rate(cell: Cell, evolution: Evolution = EVOLUTION) -> Rated:
    """The ratings of a cell."""
    if cell.payoffs.ndim == 1:
        return Rated(cell, cell.payoffs)
    dynamics = evolution.of(cell)
    deviation = deviation_ratings(cell.payoffs)
    return Rated(
        cell,
        mean_payoffs(cell.payoffs),
        dynamics.fitness,
        dynamics.population,
        deviation,
        ranks(deviation, unit=float(np.ptp(cell.payoffs))),
        dynamics.average,
        dynamics.converged,
    )


RATINGS = ("mean", "fitness", "deviation", "rank")
_OF_RUNS = ("mean", "fitness")
"""Ratings that are averaged over runs; the others are those of the pooled metagame."""
Groups = Mapping[tuple[str, str], Sequence[Rated]]
"""Cells by mechanism and game."""


def summarise(rated: Iterable[Rated], *, together: Iterable[Rated] | None = None) -> list[Summary]:
    """Every rating over the runs of each game under each mechanism, and over all games of each mechanism.

    Deviation ratings and ranks are those of the pooled metagame (`labmates.stats.pooled_ratings`). Over all games, mean
    and fitness are normalised before averaging. With few runs, intervals use the variances in all
    games and mechanisms with the same models (see `labmates.stats.samples.pooled`).

    Parameters
    ----------
    together
        The cells for averages over games, with the same models in all games; by default `rated`.
    """
    cells = list(rated)
    whole = cells if together is None else list(together)
    summaries: list[tuple[str, Summary]] = []
    pools: dict[tuple[int, ...], dict[str, list[Estimate]]] = {}

    def pool_of(runs: Sequence[Rated]) -> dict[str, list[Estimate]]:
        same = tuple(map(id, runs))  # a bootstrap takes long: the runs of a game are pooled once
        return pools[same] if same in pools else pools.setdefault(same, _of_pool(runs))

    for models, groups in _by_models(cells).items():
        of_pool = {key: pool_of(runs) for key, runs in groups.items()}
        for rating in RATINGS:
            samples = _samples(groups, rating) if rating in _OF_RUNS else {}
            estimates = {key: list(map(estimate, columns)) for key, columns in samples.items()}
            estimates |= {key: pool[rating] for key, pool in of_pool.items() if rating in pool}
            for (mechanism, game), each in estimates.items():
                what = (mechanism, game, models, rating, False)
                summaries.append((game, _summary(what, groups[mechanism, game], each)))
    for models, groups in _by_models(whole).items():
        comparable = {key: runs for key, runs in groups.items() if runs[0].cell.scale is not None}
        of_pool = {key: pool for key, runs in comparable.items() if (pool := pool_of(runs))}
        for rating in ("mean", "fitness", "rank"):
            samples = _samples(comparable, rating, normalise=True) if rating in _OF_RUNS else {}
            for mechanism in dict.fromkeys(mechanism for mechanism, _ in comparable):
                games = [key for key in comparable if key[0] == mechanism]
                if any(key not in (samples if rating in _OF_RUNS else of_pool) for key in games):
                    continue
                if rating in _OF_RUNS:
                    each = [average(column) for column in zip(*(samples[key] for key in games), strict=True)]
                else:
                    each = [mean_rank(column) for column in zip(*(of_pool[key]["rank"] for key in games), strict=True)]
                what = (mechanism, ALL_GAMES, models, rating, rating in _OF_RUNS)
                runs = [rated for key in games for rated in comparable[key]]
                summaries.append((ALL_GAMES, _summary(what, runs, each)))
    order = list(dict.fromkeys((ratings.cell.mechanism, ratings.cell.game) for ratings in cells))
    order += [(mechanism, ALL_GAMES) for mechanism in dict.fromkeys(mechanism for mechanism, _ in order)]
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _ in order))
    summaries.sort(key=lambda pair: (mechanisms.index(pair[1].mechanism), order.index((pair[1].mechanism, pair[0]))))
    return [summary for _, summary in summaries]


def _of_pool(runs: Sequence[Rated]) -> dict[str, list[Estimate]]:
    """Deviation ratings and ranks of the runs' pooled metagame; empty without one."""
    payoffs = [rated.cell.payoffs for rated in runs]
    return pooled_ratings(payoffs, runs[0].cell.domain) if payoffs[0].ndim > 1 and payoffs[0].size else {}


def _by_models(rated: Iterable[Rated]) -> dict[tuple[str, ...], dict[tuple[str, str], list[Rated]]]:
    groups: dict[tuple[str, ...], dict[tuple[str, str], list[Rated]]] = {}
    for ratings in rated:
        cell = ratings.cell
        groups.setdefault(cell.models, {}).setdefault((cell.mechanism, cell.game), []).append(ratings)
    return groups


def _samples(groups: Groups, rating: str, *, normalise: bool = False) -> dict[tuple[str, str], list[Sample]]:
    """The samples of a rating in each group, one per model; the last one is of the average."""
    keys, columns = [], []
    for key, runs in groups.items():
        values = _values(runs, rating, normalise=normalise)
        if values is not None:
            domain = _domain([ratings.cell for ratings in runs], normalise=normalise)
            keys.append(key)
            columns.append([Sample.of(column.tolist(), domain) for column in values.T])
    # A model's runs are independent; models of one run are not, so each model is pooled separately.
    shared = zip(*(pooled(column) for column in zip(*columns, strict=True)), strict=True) if columns else ()
    return dict(zip(keys, map(list, shared), strict=True))


def _domain(runs: Sequence[Cell], *, normalise: bool) -> Domain:
    """The range of payoffs in cells of one game under one mechanism."""
    cell, payoffs = runs[0], runs[0].domain
    if normalise and cell.scale is not None:
        low, high = cell.scale.normalise(np.array([payoffs.low, payoffs.high]))
        return Domain(float(min(low, high)), float(max(low, high)))
    return payoffs


def _failed(cells: Sequence[Cell], model: str) -> float | None:
    """The share of a model's decisions that failed in several cells; None if unknown."""
    known = [cell.failed(model) for cell in cells]
    return None if None in known else total(filter(None, known)).rate


def _values(rated: Sequence[Rated], name: str, *, normalise: bool = False) -> Array | None:
    """A rating of each run, shape ``(runs, models + 1)``; the last column is the average."""
    rows = []
    for ratings in rated:
        values: Array | None = getattr(ratings, name)
        if values is None or not len(values):  # no metagame, or all models left out
            return None
        average = ratings.average_fitness if name == "fitness" else values.mean()
        row = np.array([*values, average], dtype=float)
        rows.append(ratings.cell.scale.normalise(row) if normalise and ratings.cell.scale is not None else row)
    return np.array(rows)


def _summary(
    what: tuple[str, str, tuple[str, ...], str, bool],
    rated: Sequence[Rated],
    estimates: Sequence[Estimate],
) -> Summary:
    *each, average = estimates
    cells = [ratings.cell for ratings in rated]
    left_out = dict.fromkeys(model for cell in cells for model in cell.left_out)
    return Summary(
        *what,
        average.n,
        tuple(each),
        average,
        tuple(_failed(cells, model) for model in what[2]),
        {model: _failed(cells, model) or 0.0 for model in left_out},
        sum(ratings.converged is False for ratings in rated) if what[3] == "fitness" else 0,
    )
