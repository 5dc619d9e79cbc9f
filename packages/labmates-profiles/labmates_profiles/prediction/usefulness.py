"""Whether the games predict an outcome better than the models' mean, and the prediction of that mean.

The rule, for each outcome (`LEVEL` .05):

- *yes* if the permutation test rejects that the games add no information to the controls (p adjusted by Holm's method
  for all analysed outcomes), and left-out models are predicted better with the games than without them and than by the
  mean of the others;
- *no* if left-out models are significantly worse predicted with the games than by the mean of the others: the 95 %
  interval of R² lies below 0, with `LEAST_FREEDOM` models or more beyond the coefficients;
- *can't tell* otherwise.

Measured error rates: ``make bench NAME=fits ARGS="--experiment verdict"``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from labmates.stats.intervals import quantile
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, P, Table
from labmates_profiles.prediction.data import PredictionData
from labmates_profiles.prediction.design_matrix import Assembled
from labmates_profiles.prediction.evidence import LEVEL, Evidence, adjusted_means, evidence
from labmates_profiles.prediction.sources import SKILL

Answer = Literal["yes", "no", "can't tell"]
LEAST_FREEDOM: Final = 3
"""With fewer models beyond the coefficients, the jackknife of R² says "no" too often."""


@dataclass(frozen=True)
class Forecast:
    """A predicted outcome of a model outside the study.

    Attributes
    ----------
    mean, low, high
        The model's expected score over the study's mix of conditions, with its 95 % interval.
    run_low, run_high
        The 95 % interval of a single observation under an average condition.
    """

    outcome: str
    mean: float
    low: float
    high: float
    run_low: float
    run_high: float


@dataclass(frozen=True)
class Usefulness:
    """Whether to predict a new model by its games or by the models' mean.

    Attributes
    ----------
    answer
        Whether the games predict better than the models' mean.
    p, p_holm
        Of the permutation test of all games, unadjusted and adjusted for all outcomes.
    r2, r2_low, r2_high
        Of left-out models, predicted with the games (and controls); None if undefined.
    r2_without
        The same without the games: 0 for the models' mean alone, otherwise of the controls.
    models_mean
        The prediction by the models' mean.
    """

    answer: Answer
    p: float
    p_holm: float
    r2: float | None
    r2_low: float | None
    r2_high: float | None
    r2_without: float | None
    models_mean: Forecast

    @property
    def sentence(self) -> str:
        """The answer with its statistics."""
        r2 = "undefined" if self.r2 is None else f"{self.r2:.2f}"
        if self.r2_low is not None and self.r2_high is not None:
            r2 += f" [{self.r2_low:.2f}, {self.r2_high:.2f}]"
        return (
            f"Better than the models' mean: {self.answer} (R² of left-out models {r2} with the games, 0 for the mean; "
            f"permuting models p = {self.p_holm:.4f}, adjusted for all outcomes)."
        )


def usefulness(analysed: Mapping[str, tuple[PredictionData, Evidence]]) -> dict[str, Usefulness]:
    """The answer for each outcome, adjusted for all of them."""
    adjusted = holm([evidence.permutation.p for _, evidence in analysed.values()])
    return {
        outcome: _usefulness(outcome, data, evidence, 1.0 if p is None else p)
        for (outcome, (data, evidence)), p in zip(analysed.items(), adjusted, strict=True)
    }


def _usefulness(outcome: str, data: PredictionData, tests: Evidence, p: float) -> Usefulness:
    answer: Answer = "can't tell"
    if p < LEVEL and tests.r2 is not None and tests.r2 > max(tests.r2_without or 0.0, 0.0):
        answer = "yes"
    elif tests.r2_high is not None and tests.r2_high < 0 and tests.freedom >= LEAST_FREEDOM:
        answer = "no"
    return Usefulness(
        answer,
        tests.permutation.p,
        p,
        tests.r2,
        tests.r2_low,
        tests.r2_high,
        tests.r2_without,
        models_mean(outcome, data),
    )


def models_mean(outcome: str, data: PredictionData) -> Forecast:
    """The prediction for a new model by the mean of the models, with Student's t over models.

    Means are adjusted for the conditions of observations; intervals are limited by `bounded`.
    """
    means, (_, left, rank) = adjusted_means(data), data.within
    noise = left / max(len(data.outcome) - len(means) - rank, 1)
    m = len(means)
    # The means of the fitted models contain noise; with shared data sets they may differ by less than that.
    included = noise * float((1 / data.counts).mean())
    expected = max(float(means.var(ddof=1)), included) * (1 + 1 / m)
    single = expected + noise - included
    t = quantile(m - 1)
    ends = [float(means.mean()) + side * t * float(np.sqrt(v)) for v in (expected, single) for side in (-1, 1)]
    return bounded(Forecast(outcome, float(means.mean()), *ends), data)


def bounded(forecast: Forecast, data: PredictionData) -> Forecast:
    """A forecast clipped to between 0 and 1 if all scores of the study are in this range; skill may be negative."""
    if forecast.outcome == SKILL or data.outcome.min() < 0 or data.outcome.max() > 1:
        return forecast
    numbers = (forecast.mean, forecast.low, forecast.high, forecast.run_low, forecast.run_high)
    return Forecast(forecast.outcome, *(min(1.0, max(0.0, number)) for number in numbers))


def answers_table(outcomes: Sequence[Assembled], *, seed: int = 0) -> Table:
    """Whether the games predict better than the models' mean, a row for each outcome, without any fit."""
    tested = [evidence(assembled.data, seed=seed) for assembled in outcomes]
    useful = usefulness(
        {assembled.outcome: (assembled.data, tests) for assembled, tests in zip(outcomes, tested, strict=True)}
    )
    rows = [
        {
            "outcome": assembled.outcome,
            "better": use.answer,
            "mean": use.models_mean.mean,
            "mean_low": use.models_mean.low,
            "mean_high": use.models_mean.high,
            "r2": use.r2,
            "r2_low": use.r2_low,
            "r2_high": use.r2_high,
            "r2_mean": 0.0,
            "r2_without": use.r2_without,
            "f": tests.permutation.statistic,
            "p": use.p,
            "p_holm": use.p_holm,
            "judge": assembled.judge,
            "models": len(assembled.data.models),
            "families": tests.permutation.families,
            "observations": len(assembled.data.outcome),
            "freedom": tests.freedom,
        }
        for assembled, tests, use in zip(outcomes, tested, useful.values(), strict=True)
    ]
    columns = [
        Column("outcome"),
        Column("better", "better than the mean"),
        Column("mean", "models' mean", shows="both"),
        Column("r2", "R² with games", ".2f", "both"),
        Column("r2_mean", "R² of the mean", ".0f"),
        Column("r2_without", "R² without games", ".2f"),
        Column("f", "F", ".2f"),
        Column("p", "p (permutation)", P),
        Column("p_holm", "p (Holm)", P),
        *map(Column, ("judge", "models", "families", "observations")),
        Column("freedom", "degrees of freedom"),
    ]
    notes = [
        "R² of left-out families of models: 0 for the mean of the others, negative if worse. In brackets 95 % "
        "intervals: of the mean for a new model, by Student's t; of R², by the jackknife over families.",
        "F of all games given the controls, p by permuting models (Freedman-Lane) freed of the correlation within "
        "families, Holm-adjusted for all outcomes.",
    ]
    return Table("prediction-verdict", "Do the games predict better than the models' mean?", columns, rows, notes)
