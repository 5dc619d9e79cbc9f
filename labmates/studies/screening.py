"""How models would do in the lab, predicted from how they play: each by a study that it is no part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labmates.analysis.bayes.prediction.assembly import Assembled, Choice, assemble, assemble_all
from labmates.analysis.bayes.prediction.density import Form
from labmates.analysis.bayes.prediction.fit import PredictionFit, fit_prediction
from labmates.analysis.bayes.prediction.screening import Forecast, Standing, candidate, forecast, standing
from labmates.analysis.bayes.prediction.sources import COMPARED, LeftOut, Level
from labmates.analysis.profiles import Profile, told_excluded
from labmates.errors import UsageError
from labmates.studies.material import Material


@dataclass(frozen=True)
class Screened:
    """How a model would do in the lab.

    Attributes
    ----------
    form, source
        Of the model of the study, and where the study is from.
    studies, forecasts, standings
        By outcome: the data, what they predict, and where the model lies among theirs.
    observed
        By outcome, how the model did in the lab, where it has been there.
    left_out
        What the study does not rest on.
    doubts
        Why not to trust the prediction.
    """

    model: str
    form: str
    source: str
    studies: Mapping[str, Assembled]
    forecasts: Mapping[str, Forecast]
    standings: Mapping[str, Standing]
    observed: Mapping[str, float]
    left_out: tuple[LeftOut, ...]
    doubts: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "model": self.model,
            "form": self.form,
            "source": self.source,
            "left_out": [asdict(left) for left in self.left_out],
            "outcomes": {
                outcome: {
                    **asdict(self.forecasts[outcome]),
                    "observed": self.observed.get(outcome),
                    "standing": asdict(self.standings[outcome]),
                    "study": {
                        "judge": one.judge,
                        "unit": one.unit,
                        "models": list(one.data.models),
                        "observations": len(one.data.outcome),
                        "runs": one.runs,
                        "games": list(one.data.games),
                        "controls": list(one.data.controls),
                        "left_out": [asdict(left) for left in one.left_out],
                        "notes": list(one.notes),
                    },
                }
                for outcome, one in self.studies.items()
            },
            "warnings": list(self.doubts),
        }


def levels_of_profile(profile: Profile) -> list[Level]:
    """Return how a model plays each game, out of its profile.

    Raises
    ------
    UsageError
        If a game is excluded: too many decisions failed.
    """
    if excluded := told_excluded(profile):
        raise UsageError(f"the profile can't be used: {' '.join(excluded)}")
    return [
        Level(profile.model, one.game, one.level.value, one.level.error, one.level.n, one.failed_rate)
        for one in profile.games
        if one.level is not None
    ]


class Screening:
    """Predicts models' outcomes from those of a study, which is fitted once for all models that are not part of it.

    Parameters
    ----------
    material
        The study.
    choice
        What of it is analysed.
    form
        Form of the model.
    outcomes
        What is predicted; if empty, skill (accuracy where no run has it), quality and completeness.
    seed
        Of draws from posteriors.

    Raises
    ------
    UsageError
        If the study is not good for a prediction.
    """

    def __init__(
        self, material: Material, choice: Choice, form: Form, outcomes: Sequence[str] = (), *, seed: int = 0
    ) -> None:
        self._material = material
        self._choice = choice
        self._form = form
        self._seed = seed
        self._studies: dict[tuple[str, str], Assembled] = {}
        self._fits: dict[tuple[str, str], PredictionFit] = {}
        whole, without = assemble_all(outcomes, lambda outcome: self._assembled(outcome, ""), COMPARED)
        self._outcomes = [one.outcome for one in whole]
        self._left_out = (*without, *material.left_out)

    def games(self) -> list[str]:
        """Return the games that a profile needs."""
        found = [game for outcome in self._outcomes for game in self._assembled(outcome, "").data.games]
        return list(dict.fromkeys(found))

    def of(self, model: str, levels: Sequence[Level]) -> Screened:
        """Predict the outcomes of a model."""
        known = self._material.traits([model]).get(model)
        studies, forecasts, standings, observed = {}, {}, {}, {}
        doubts: list[str] = []
        for outcome in self._outcomes:
            whole = self._assembled(outcome, "")
            inside = model in whole.data.models
            study = self._assembled(outcome, model) if inside else whole
            if inside:
                rows = whole.data.model_of == whole.data.models.index(model)
                observed[outcome] = float(whole.data.outcome[rows].mean())
            fit = self._fit(outcome, model if inside else "", study)
            new = candidate(model, levels, known, study)
            studies[outcome] = study
            forecasts[outcome] = forecast(fit, new, outcome, seed=self._seed)
            standings[outcome] = standing(study.data, new)
            doubts += [f"{outcome}: {text}" for text in fit.warnings]
        return Screened(
            model,
            self._form,
            self._material.told,
            studies,
            forecasts,
            standings,
            observed,
            self._left_out,
            tuple(doubts),
        )

    def _assembled(self, outcome: str, without: str) -> Assembled:
        if (outcome, without) not in self._studies:
            levels = [one for one in self._material.levels if one.model != without]
            runs = [one for one in self._material.observations if one.model != without]
            found = assemble(outcome, levels, runs, self._material.traits(), self._choice)
            self._studies[outcome, without] = found
        return self._studies[outcome, without]

    def _fit(self, outcome: str, without: str, study: Assembled) -> PredictionFit:
        if (outcome, without) not in self._fits:
            self._fits[outcome, without] = fit_prediction(study.data, self._form, seed=self._seed)
        return self._fits[outcome, without]
