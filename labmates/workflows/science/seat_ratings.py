"""The lab as a game between models: each team is a seat, each seat takes a model, and the payoff is the lab's score.

Seats differ in their work, so the asymmetric game rates every model on every seat, from an array of shape ``(models,) *
seats``. The rating of a model on any seat is that of the symmetrised game, in which models are assigned to seats at
random: an entry is the mean over all seatings of the same models.

Ratings are those of dilemmas (CoopEval, section 5): the mean over all seatings; the fitness after replicator dynamics
with a population for each seat; and the deviation rating (Marris et al. 2025), in which every model on every seat is a
row of one program. Every seating must have been played: missing ones are not imputed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product, repeat
from typing import Any, Final, Literal

import numpy as np

from labmates.display_names import settings_apart, shown_settings
from labmates.errors import UsageError
from labmates.stats.deviation import deviation_ratings, joint_deviation_ratings, ranks
from labmates.stats.domains import ANY, SHARE, Domain
from labmates.stats.intervals import ONE, Estimate, clipped, notes
from labmates.stats.metagame import MOST_ENTRIES, Array
from labmates.stats.replicator import AT_REST, RATE, STEPS
from labmates.stats.tables import Column, Table

ANY_SEAT: Final = "any seat"
RATINGS: Final = ("mean", "fitness", "population", "deviation", "rank")
RESAMPLES: Final = 200

Seating = tuple[int, ...]


@dataclass(frozen=True)
class SeatGame:
    """One game and its plays.

    Attributes
    ----------
    condition
        Parameters common to all runs.
    scores
        Seed and score of each run, by seating (the index of each seat's model).
    unscored
        Runs without the score, which are excluded.
    """

    condition: Mapping[str, Any]
    seats: tuple[str, ...]
    models: tuple[str, ...]
    scores: Mapping[Seating, Sequence[tuple[int, float]]]
    unscored: tuple[str, ...] = ()

    def missing(self) -> list[Seating]:
        """Seatings without any score."""
        every = product(range(len(self.models)), repeat=len(self.seats))
        return [seating for seating in every if not self.scores.get(seating)]


@dataclass(frozen=True)
class SeatRatings:
    """Ratings of each model on each seat, and on any seat in the last row; shape ``(seats + 1, models)``.

    Attributes
    ----------
    estimates
        The ratings with intervals; without intervals if a seating was played only once.
    resampled
        Unit of the bootstrap: ``seed`` (data sets with all their runs) or ``run`` (runs within each seating).
    unconverged
        Number of populations that have not converged.
    """

    game: SeatGame
    values: Mapping[str, Array]
    estimates: Mapping[str, Sequence[Sequence[Estimate]]]
    resampled: Literal["seed", "run"]
    runs: int
    unconverged: int = 0


def seat_ratings(payoffs: Array) -> dict[str, Array]:
    """Ratings of games in which all players get the same payoff.

    Parameters
    ----------
    payoffs
        Common payoff in each game, shape ``(games, models, …)`` with an axis of models for each seat.

    Returns
    -------
    ratings
        By name, shape ``(games, seats + 1, models)``; the last row is of the symmetrised game. Ranks are within rows.
    """
    games, seats = len(payoffs), payoffs.ndim - 1
    anywhere = symmetrised(payoffs)
    both = np.concatenate([payoffs, anywhere])
    populations = np.concatenate([_evolved(payoffs), _evolved(anywhere, alike=True)])
    uniform = np.full_like(populations, 1 / payoffs.shape[-1])

    def rows(values: Array) -> Array:
        return np.concatenate([values[:games], values[games:, :1]], axis=1)

    deviation = np.stack(
        [
            np.concatenate([joint_deviation_ratings([game] * seats), deviation_ratings(same)[None]])
            for game, same in zip(payoffs, anywhere, strict=True)
        ]
    )
    return {
        "mean": rows(_against(both, uniform)),
        "fitness": rows(_against(both, populations)),
        "population": rows(populations),
        "deviation": deviation,
        "rank": np.array(
            [
                [ranks(row, unit=float(np.ptp(game))) for row in rows_]
                for rows_, game in zip(deviation, payoffs, strict=True)
            ]
        ),
    }


def symmetrised(payoffs: Array) -> Array:
    """Symmetrised games, with random assignment of models to seats: the mean over all orders of the seats' axes."""
    orders = list(permutations(range(1, payoffs.ndim)))
    return np.asarray(sum(np.transpose(payoffs, (0, *order)) for order in orders) / len(orders))


def rate_teams(game: SeatGame, domain: Domain = ANY, *, resamples: int = RESAMPLES, seed: int = 0) -> SeatRatings:
    """Ratings of a game's mean scores, with t intervals by the standard error of a bootstrap.

    If every seating was played with the same seeds, the bootstrap draws seeds, since runs of one seed share their data
    set; otherwise it draws runs within each seating.

    Raises
    ------
    UsageError
        If a seating was not played, or there is only one model or too many.
    """
    if len(game.models) < 2:
        raise UsageError("a rating compares at least two models; there is only one")
    if len(game.models) ** len(game.seats) > MOST_ENTRIES:
        raise UsageError(f"{len(game.models)} models on {len(game.seats)} seats make too large a game")
    if missing := game.missing():
        raise UsageError(f"{len(missing)} of {len(game.models) ** len(game.seats)} seatings were not played")
    drawn, unit, n = _resampled(game, resamples, np.random.default_rng(seed))
    payoffs = _means(game)
    values = {name: some[0] for name, some in seat_ratings(payoffs[None]).items()}
    runs = sum(map(len, game.scores.values()))
    each: dict[str, list[list[Estimate]]] = {}
    errors = (
        {name: some.std(axis=0) * math.sqrt(n / (n - 1)) for name, some in seat_ratings(drawn).items()} if n > 1 else {}
    )
    # For runs within seatings, the mean of a model on a seat is over all seatings with the model there.
    df = n - 1 if unit == "seed" else sum(len(some) - 1 for some in game.scores.values()) / len(game.models)
    method = f"bootstrap over {'data sets' if unit == 'seed' else 'runs within seatings'}, t"
    for name, of_name in values.items():
        inside = _domains(domain, len(game.models))[name]
        each[name] = [
            [
                clipped(float(value), float(error), df, inside, n=n, method=method)
                if error is not None
                else Estimate(float(value), None, None, None, n, reason=ONE)
                for value, error in zip(row, errors[name][place] if errors else repeat(None, len(row)), strict=True)
            ]
            for place, row in enumerate(of_name)
        ]
    return SeatRatings(game, values, each, unit, runs, _unconverged(payoffs, values))


def _domains(scores: Domain, models: int) -> dict[str, Domain]:
    return {
        "mean": scores,
        "fitness": scores,
        "population": SHARE,
        "deviation": Domain(scores.low - scores.high, 0.0),
        "rank": Domain(1.0, float(models)),
    }


def _unconverged(payoffs: Array, values: Mapping[str, Array]) -> int:
    """The number of populations in which a model exceeds the average by more than `AT_REST` of the range."""
    averages = (values["population"] * values["fitness"]).sum(axis=1)
    gains = values["fitness"].max(axis=1) - averages
    return int((gains > AT_REST * np.ptp(payoffs)).sum())


def teams_table(rated: Sequence[SeatRatings], metric: str) -> Table:
    """A table of ratings: a row per game, seat and model."""
    rows: list[dict[str, Any]] = []
    differing = settings_apart([rating.game.condition for rating in rated])
    for rating in rated:
        game = rating.game
        settings = {name: value for name, value in game.condition.items() if isinstance(value, str | int | float)}
        settings |= shown_settings(game.condition, differing)
        for place, seat in enumerate((*game.seats, ANY_SEAT)):
            for number, model in enumerate(game.models):
                row: dict[str, Any] = {**settings, "seat": seat, "model": model}
                for name in RATINGS:
                    row |= rating.estimates[name][place][number].row(name)
                rows.append({**row, "runs": rating.runs, "unconverged": rating.unconverged})
    columns = [Column(name, once=True) for name in differing]
    columns += [Column("seat", once=True), Column("model")]
    columns += [Column(name, form=".1f" if name == "rank" else ".3f", shows="both") for name in RATINGS]
    remarks = [
        f"Payoff: {metric} of the whole lab. Mean over all seatings; fitness and population after replicator dynamics; "
        "deviation rating (0: no other choice gains; lower is worse) and its rank on the seat. On any "
        "seat: in the symmetrised game, in which models are dealt to seats at random.",
        *notes(mean for rating in rated for of in rating.estimates.values() for row in of for mean in row),
    ]
    for rating in rated:
        if rating.unconverged:
            remarks.append(
                f"{rating.unconverged} populations have not converged: more steps would change their fitness."
            )
        if rating.game.unscored:
            remarks.append(f"{len(rating.game.unscored)} runs without this score are excluded.")
    return Table(
        "teams", f"Ratings of models in science teams by {metric}", columns, rows, list(dict.fromkeys(remarks))
    )


def _means(game: SeatGame) -> Array:
    payoffs = np.empty((len(game.models),) * len(game.seats))
    for seating, scores in game.scores.items():
        payoffs[seating] = np.mean([score for _, score in scores])
    return payoffs


def _resampled(game: SeatGame, resamples: int, rng: np.random.Generator) -> tuple[Array, Literal["seed", "run"], int]:
    """Mean payoffs of resamples, the resampled unit, and the number of units; empty if a seating has a single play."""
    by_seating = {
        seating: {seed: [score for other, score in scores if other == seed] for seed, _ in scores}
        for seating, scores in game.scores.items()
    }
    seeds = sorted(next(iter(by_seating.values())))
    shared = all(sorted(by_seed) == seeds for by_seed in by_seating.values())
    unit: Literal["seed", "run"] = "seed" if shared else "run"
    n = min(len(by_seed) if shared else len(game.scores[seating]) for seating, by_seed in by_seating.items())
    if n < 2:
        return np.empty(0), unit, n
    payoffs = np.empty((resamples, *(len(game.models),) * len(game.seats)))
    weights = rng.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), resamples) if shared else None
    for seating, scores in game.scores.items():
        place: Any = (..., *seating)
        if weights is not None:
            means = np.array([np.mean(by_seating[seating][seed]) for seed in seeds])
            payoffs[place] = weights @ means / len(seeds)
        else:
            values = np.array([score for _, score in scores])
            payoffs[place] = values[rng.integers(len(values), size=(resamples, len(values)))].mean(1)
    return payoffs, unit, n


def _evolved(payoffs: Array, *, alike: bool = False, steps: int = STEPS, rate: float = RATE) -> Array:
    """Final populations of games, shape ``(games, seats, models)``.

    Parameters
    ----------
    alike
        Whether all seats share one population; separate ones could drift apart by rounding.
    """
    models, seats = payoffs.shape[-1], payoffs.ndim - 1
    logs = np.zeros((len(payoffs), seats, models))
    populations = np.full_like(logs, 1 / models)
    for _ in range(steps):
        fitness = _against(payoffs, populations)
        logs += rate * (fitness[:, :1] if alike else fitness)
        populations = np.exp(logs - logs.max(axis=-1, keepdims=True))
        populations /= populations.sum(axis=-1, keepdims=True)
    return populations


def _against(payoffs: Array, populations: Array) -> Array:
    """Payoff of each model on each seat against the other seats' populations, shape ``(games, seats, models)``."""
    seats = payoffs.ndim - 1
    gains = []
    for seat in range(seats):
        values = np.moveaxis(payoffs, seat + 1, 1)
        for other in reversed([*range(seat), *range(seat + 1, seats)]):
            values = np.einsum("g...m,gm->g...", values, populations[:, other])
        gains.append(values)
    return np.stack(gains, axis=1)
