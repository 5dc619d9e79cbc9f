"""Predictions of models' lab performance from their play, each fitted without the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from labmates.errors import UsageError
from labmates.stats.tables import Column, Table
from labmates_profiles.prediction import Form
from labmates_profiles.prediction.design_matrix import Assembled, Choice
from labmates_profiles.prediction.evidence import Evidence, evidence
from labmates_profiles.prediction.fit import PredictionFit, fit_prediction
from labmates_profiles.prediction.material import Material
from labmates_profiles.prediction.screening import Standing, candidate, forecast, standing
from labmates_profiles.prediction.sources import COMPARED, LeftOut, Level
from labmates_profiles.prediction.usefulness import Forecast, Usefulness, usefulness
from labmates_profiles.profiles import Profile, exclusion_notes

BY_GAMES, BY_MEAN = "with games", "models' mean"


@dataclass(frozen=True)
class Outlook:
    """The prediction of one outcome of a model.

    Attributes
    ----------
    study
        The data that it is fitted to.
    useful
        Whether games predict better than the models' mean.
    standing
        Distance of the model from the study.
    observed
        The model's mean lab result, if it has lab runs.
    """

    study: Assembled
    useful: Usefulness
    with_games: Forecast
    standing: Standing
    observed: float | None

    @property
    def forecasts(self) -> list[tuple[str, Forecast]]:
        """Both predictions with their basis, first the headline: with games if these are better than the mean."""
        both = [(BY_GAMES, self.with_games), (BY_MEAN, self.useful.models_mean)]
        return both if self.useful.answer == "yes" else both[::-1]

    def json(self) -> dict[str, Any]:
        """The object as JSON data."""
        (headline, forecast), _ = self.forecasts
        return {
            "better_than_mean": self.useful.answer,
            "headline": headline,
            **asdict(forecast),
            "with_games": asdict(self.with_games),
            "usefulness": asdict(self.useful),
            "observed": self.observed,
            "standing": asdict(self.standing),
            "study": self.study.json(),
        }


@dataclass(frozen=True)
class Screened:
    """The predicted lab performance of a model.

    Attributes
    ----------
    form, source
        Of the fitted study.
    outcomes
        The prediction of each outcome.
    left_out
        Exclusions from the study.
    doubts
        Reasons not to trust the prediction.
    """

    model: str
    form: str
    source: str
    outcomes: Mapping[str, Outlook]
    left_out: tuple[LeftOut, ...]
    doubts: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """The object as JSON data."""
        return {
            "model": self.model,
            "form": self.form,
            "source": self.source,
            "left_out": [asdict(left) for left in self.left_out],
            "outcomes": {name: outlook.json() for name, outlook in self.outcomes.items()},
            "warnings": list(self.doubts),
        }


def levels_of_profile(profile: Profile) -> list[Level]:
    """A model's level in each game, from its profile; UsageError if too many decisions failed in a game."""
    if excluded := exclusion_notes(profile):
        raise UsageError(f"the profile can't be used: {' '.join(excluded)}")
    return [
        Level(profile.model, game.game, game.level.value, game.level.error, game.level.n, game.failed_rate)
        for game in profile.games
        if game.level is not None
    ]


def screening_table(screened: Sequence[Screened]) -> Table:
    """The predictions for models, two rows for each outcome: the headline, then the other prediction."""
    rows = [
        {
            "model": result.model,
            "form": result.form,
            "outcome": outcome,
            "better": outlook.useful.answer,
            "prediction": prediction,
            "headline": not rank,
            "score": forecast.mean,
            "score_low": forecast.low,
            "score_high": forecast.high,
            "run": forecast.mean,
            "run_low": forecast.run_low,
            "run_high": forecast.run_high,
            "r2": outlook.useful.r2 if prediction == BY_GAMES else 0.0,
            "p": outlook.useful.p,
            "p_holm": outlook.useful.p_holm,
            "observed": outlook.observed,
            "where": outlook.standing.where,
            "judge": outlook.study.judge,
            "models": len(outlook.study.data.models),
            "observations": len(outlook.study.data.outcome),
            "runs": outlook.study.runs,
        }
        for result in screened
        for outcome, outlook in result.outcomes.items()
        for rank, (prediction, forecast) in enumerate(outlook.forecasts)
    ]
    is_observed = any(row["observed"] is not None for row in rows)
    columns = [
        *([Column("model", once=True)] if len(screened) > 1 else []),
        Column("outcome", once=True),
        Column("better", "better than the mean", once=True),
        Column("prediction"),
        Column("score", "predicted", shows="value"),
        Column("score", "95 % interval", shows="interval"),
        Column("run", "95 % of single observations", shows="interval"),
        Column("r2", "R² of left-out models", ".2f"),
        *([Column("observed")] if is_observed else []),
        *map(Column, ("judge", "models", "observations", "runs")),
    ]
    named = ", ".join(result.model for result in screened)
    note = (
        "The headline comes first: the prediction with games if it is better than the models' mean, otherwise that "
        "mean. R² of the mean is 0 by definition."
    )
    return Table("screen", f"{named} in the lab, predicted from how it plays", columns, rows, [note])


class Screening:
    """Predicts models' outcomes from a study, which is fitted once for all models outside it.

    Parameters
    ----------
    material
        The study.
    choice
        The part of it to analyse.
    outcomes
        By default skill (accuracy if no run has it), quality and completeness.
    seed
        Of draws from posteriors.

    Raises
    ------
    UsageError
        If the study does not permit a prediction.
    """

    def __init__(
        self, material: Material, choice: Choice, form: Form, outcomes: Sequence[str] = (), *, seed: int = 0
    ) -> None:
        if choice.covariates:
            raise UsageError("screening takes no covariates: predict with games and benchmarks only")
        self._material = material
        self._form = form
        self._seed = seed
        self._assembled = cache(lambda outcome, without: material.assemble(outcome, choice, without))
        self._fitted = cache(self._fit)
        whole, without = material.assembled(choice, outcomes, COMPARED)
        self._outcomes = [assembled.outcome for assembled in whole]
        self._left_out = (*without, *material.left_out)

    def games(self) -> list[str]:
        """The games of a complete profile."""
        games = [game for outcome in self._outcomes for game in self._assembled(outcome, "").data.games]
        return list(dict.fromkeys(games))

    def of(self, model: str, levels: Sequence[Level]) -> Screened:
        """Predict the outcomes of a model."""
        known = self._material.traits([model]).get(model)
        made, tested, doubts = {}, {}, []
        for outcome in self._outcomes:
            whole = self._assembled(outcome, "").data
            left = model if model in whole.models else ""
            study = self._assembled(outcome, left)
            fit, tests = self._fitted(outcome, left)
            new = candidate(model, levels, known, study)
            observed = float(whole.outcome[whole.model_of == whole.models.index(model)].mean()) if left else None
            with_games, where = forecast(fit, new, outcome, seed=self._seed), standing(study.data, new)
            made[outcome] = partial(Outlook, study, with_games=with_games, standing=where, observed=observed)
            tested[outcome] = study.data, tests
            doubts += [f"{outcome}: {text}" for text in fit.warnings]
        useful = usefulness(tested)
        outlooks = {outcome: make(useful=useful[outcome]) for outcome, make in made.items()}
        return Screened(model, self._form, self._material.told, outlooks, self._left_out, tuple(doubts))

    def _fit(self, outcome: str, without: str) -> tuple[PredictionFit, Evidence]:
        data = self._assembled(outcome, without).data
        return fit_prediction(data, self._form, seed=self._seed), evidence(data, seed=self._seed)
