"""Predictions of models' lab performance from their play, each fitted without the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from labmates.errors import UsageError
from labmates.stats.tables import Column, Table
from labmates_profiles.prediction import Form
from labmates_profiles.prediction.design_matrix import Assembled, Choice, assemble, assemble_all
from labmates_profiles.prediction.evidence import Evidence, evidence
from labmates_profiles.prediction.fit import PredictionFit, fit_prediction
from labmates_profiles.prediction.material import Material
from labmates_profiles.prediction.screening import Standing, candidate, forecast, standing
from labmates_profiles.prediction.sources import COMPARED, LeftOut, Level
from labmates_profiles.prediction.usefulness import Forecast, Usefulness, usefulness
from labmates_profiles.profiles import Profile, exclusion_notes

BY_GAMES, BY_MEAN = "with games", "models' mean"


@dataclass(frozen=True)
class Screened:
    """The predicted lab performance of a model.

    The headline of an outcome is the prediction with the games if it is better than the models' mean, otherwise that
    mean.

    Attributes
    ----------
    form, source
        Of the fitted study.
    studies, useful, forecasts, standings
        By outcome: data, usefulness of the games, prediction with the games, and distance of the model from the study.
    observed
        The model's mean lab result by outcome, if it has lab runs.
    left_out
        Exclusions from the study.
    doubts
        Reasons not to trust the prediction.
    """

    model: str
    form: str
    source: str
    studies: Mapping[str, Assembled]
    useful: Mapping[str, Usefulness]
    forecasts: Mapping[str, Forecast]
    standings: Mapping[str, Standing]
    observed: Mapping[str, float]
    left_out: tuple[LeftOut, ...]
    doubts: tuple[str, ...]

    def predictions(self, outcome: str) -> list[tuple[str, Forecast]]:
        """Both predictions of an outcome with their basis, the headline first."""
        both = [(BY_GAMES, self.forecasts[outcome]), (BY_MEAN, self.useful[outcome].models_mean)]
        return both if self.useful[outcome].answer == "yes" else both[::-1]

    def json(self) -> dict[str, Any]:
        """The object as JSON data."""
        return {
            "model": self.model,
            "form": self.form,
            "source": self.source,
            "left_out": [asdict(left) for left in self.left_out],
            "outcomes": {
                outcome: {
                    "better_than_mean": self.useful[outcome].answer,
                    "headline": self.predictions(outcome)[0][0],
                    **asdict(self.predictions(outcome)[0][1]),
                    "with_games": asdict(self.forecasts[outcome]),
                    "usefulness": asdict(self.useful[outcome]),
                    "observed": self.observed.get(outcome),
                    "standing": asdict(self.standings[outcome]),
                    "study": {
                        "judge": study.judge,
                        "unit": study.unit,
                        "models": list(study.data.models),
                        "observations": len(study.data.outcome),
                        "runs": study.runs,
                        "games": list(study.data.games),
                        "controls": list(study.data.controls),
                        "left_out": [asdict(left) for left in study.left_out],
                        "notes": list(study.notes),
                    },
                }
                for outcome, study in self.studies.items()
            },
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
            "better": result.useful[outcome].answer,
            "prediction": prediction,
            "headline": not rank,
            "score": forecast.mean,
            "score_low": forecast.low,
            "score_high": forecast.high,
            "run": forecast.mean,
            "run_low": forecast.run_low,
            "run_high": forecast.run_high,
            "r2": result.useful[outcome].r2 if prediction == BY_GAMES else 0.0,
            "p": result.useful[outcome].p,
            "p_holm": result.useful[outcome].p_holm,
            "observed": result.observed.get(outcome),
            "where": result.standings[outcome].where,
            "judge": study.judge,
            "models": len(study.data.models),
            "observations": len(study.data.outcome),
            "runs": study.runs,
        }
        for result in screened
        for outcome, study in result.studies.items()
        for rank, (prediction, forecast) in enumerate(result.predictions(outcome))
    ]
    columns = [
        *([Column("model", once=True)] if len(screened) > 1 else []),
        Column("outcome", once=True),
        Column("better", "better than the mean", once=True),
        Column("prediction"),
        Column("score", "predicted", shows="value"),
        Column("score", "95 % interval", shows="interval"),
        Column("run", "95 % of single observations", shows="interval"),
        Column("r2", "R² of left-out models", ".2f"),
        *([Column("observed")] if any(result.observed for result in screened) else []),
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
        self._choice = choice
        self._form = form
        self._seed = seed
        self._assembled = cache(self._assemble)
        self._fitted = cache(self._fit)
        whole, without = assemble_all(outcomes, lambda outcome: self._assembled(outcome, ""), COMPARED)
        self._outcomes = [assembled.outcome for assembled in whole]
        self._left_out = (*without, *material.left_out)

    def games(self) -> list[str]:
        """The games of a complete profile."""
        games = [game for outcome in self._outcomes for game in self._assembled(outcome, "").data.games]
        return list(dict.fromkeys(games))

    def of(self, model: str, levels: Sequence[Level]) -> Screened:
        """Predict the outcomes of a model."""
        known = self._material.traits([model]).get(model)
        studies, forecasts, standings, observed, tested = {}, {}, {}, {}, {}
        doubts: list[str] = []
        for outcome in self._outcomes:
            whole = self._assembled(outcome, "")
            inside = model in whole.data.models
            study = self._assembled(outcome, model) if inside else whole
            if inside:
                rows = whole.data.model_of == whole.data.models.index(model)
                observed[outcome] = float(whole.data.outcome[rows].mean())
            fit, tests = self._fitted(outcome, model if inside else "")
            new = candidate(model, levels, known, study)
            studies[outcome] = study
            tested[outcome] = study.data, tests
            forecasts[outcome] = forecast(fit, new, outcome, seed=self._seed)
            standings[outcome] = standing(study.data, new)
            doubts += [f"{outcome}: {text}" for text in fit.warnings]
        return Screened(
            model,
            self._form,
            self._material.told,
            studies,
            usefulness(tested),
            forecasts,
            standings,
            observed,
            self._left_out,
            tuple(doubts),
        )

    def _assemble(self, outcome: str, without: str) -> Assembled:
        levels = [level for level in self._material.levels if level.model != without]
        runs = [run for run in self._material.observations if run.model != without]
        return assemble(outcome, levels, runs, self._material.traits(), self._choice)

    def _fit(self, outcome: str, without: str) -> tuple[PredictionFit, Evidence]:
        data = self._assembled(outcome, without).data
        return fit_prediction(data, self._form, seed=self._seed), evidence(data, seed=self._seed)
