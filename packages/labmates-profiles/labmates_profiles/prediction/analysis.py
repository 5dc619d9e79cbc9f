"""The analyses `prediction`, `usefulness` and `check/prediction`: lab outcomes predicted from games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, FilePath

from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Analysis, Drawing, Result, Runs, TooFewRunsError
from labmates_profiles.fitted import (
    CheckParams,
    FitParams,
    RowsParams,
    checked,
    compared,
    least_squares_table,
)
from labmates_profiles.prediction import FORMS, Form, Rule

if TYPE_CHECKING:
    from labmates.stats.tables import Table
    from labmates_profiles.bayes.blocks import Block
    from labmates_profiles.prediction.data import PredictionData
    from labmates_profiles.prediction.design_matrix import Assembled, Choice
    from labmates_profiles.prediction.material import Material
    from labmates_profiles.prediction.sources import LeftOut
    from labmates_profiles.prediction.tables import OutcomeResult


class MaterialParams(FitParams):
    """The outcomes and the predictors."""

    games: FilePath | None = Field(
        None,
        description="Profiles from a CSV file instead of the store, with the columns model, game, level (a row per "
        "simulation) or model, game, mean, error, simulations.",
    )
    lab: FilePath | None = Field(
        None,
        description="Lab runs from a CSV file instead of the store, with the columns model, accuracy, quality, "
        "completeness, any of task, budget, visibility, team_size and theory_of_mind, and optionally judge and team.",
    )
    outcomes: tuple[str, ...] = Field(
        (),
        description="accuracy, quality (a model's rating), heuristic_quality, completeness, skill or provenance; "
        "repeatable. Default: accuracy, quality and completeness, as in the paper; for screen skill, quality and "
        "completeness; heuristic_quality where no model rated quality.",
    )
    judges: tuple[str, ...] = Field(
        (),
        description="[OUTCOME=]NAME: judge of all outcomes or of one; repeatable. Default: verified for accuracy and "
        "skill, the only judge for others. Required if several judges scored.",
    )
    game: tuple[str, ...] = Field((), description="A game; repeatable. Default: all.")
    no_benchmarks: bool = Field(
        False,
        description="Do not control for benchmark scores, size and thinking; models without scores are then included.",
    )
    unit: Literal["condition", "run"] | None = Field(
        None,
        description="Unit of observation: condition (the mean of a model's runs in one condition, as in the paper) "
        "or run. Default: condition, or run if no model has two conditions.",
    )
    team: Rule | None = Field(
        None,
        description="Include teams of several models, with the disposition of their lead, their minimum, the mean of "
        "all seats, or each (the lead's, and the mean of the other seats). Default: leave them out.",
    )
    draws_seed: int = Field(0, ge=0, description="Seed of posterior draws.")

    def choice(self) -> Choice:
        """The parameters as a choice of outcomes, judges and predictors; UsageError if they contradict each other."""
        from labmates_profiles.bayes.covariates import read_covariates
        from labmates_profiles.prediction.design_matrix import Choice
        from labmates_profiles.prediction.sources import check_outcomes

        check_outcomes(self.outcomes)
        judges: dict[str, str] = {}
        for text in self.judges:
            outcome, equals, name = text.partition("=")
            if equals:
                check_outcomes([outcome])
            else:
                outcome, name = "", text
            if outcome in judges:
                raise UsageError(
                    f"--judge: two judges for {outcome or 'all outcomes'}; scores are not mixed, choose one"
                )
            judges[outcome] = name.strip()
        files = [path for path in (*self.rosters, self.games, self.lab) if path is not None]
        covariates = read_covariates(self.covariates, files)
        games = tuple(dict.fromkeys(self.game))
        return Choice(judges, games, not self.no_benchmarks, self.unit, covariates, self.team)

    def material(self, runs: Runs, variant: Mapping[str, str] | None = None) -> Material:
        """The profiles and lab runs; see `labmates_profiles.prediction.material.read_material`."""
        from labmates_profiles.prediction.material import read_material

        return read_material(runs, games_file=self.games, lab_file=self.lab, rosters=self.rosters, variant=variant)

    def assembled(
        self, runs: Runs, variant: Mapping[str, str] | None = None
    ) -> tuple[Material, list[Assembled], list[LeftOut]]:
        """The material, the data of each outcome, and the outcomes that are left out."""
        choice = self.choice()
        material = self.material(runs, variant)
        return material, *material.assembled(choice, self.outcomes)


class PredictionParams(RowsParams, MaterialParams):
    """The parameters of the prediction of lab outcomes."""

    spec: tuple[Form, ...] = Field((), description="Form of the model; repeatable. Default: all three.")
    variant: dict[str, str] = Field(
        {},
        description="Use profiles from another condition, such as reasoning=cot; repeatable.",
    )
    draws: int = Field(4000, ge=500, le=100_000, description="Posterior draws per fit.")


class PredictionCheckParams(CheckParams, MaterialParams):
    """The parameters of checking the prediction of lab outcomes."""

    spec: tuple[Form, ...] = Field((), description="Form of the model; repeatable. Default: all three.")


def prediction(runs: Runs, params: PredictionParams) -> Result:
    """Test whether models' dispositions in games predict their teams' results in the lab.

    Fits the cooperative-profiles paper's model with measurement error: as published (paper), with a random intercept
    per model (robust), and with correlated dispositions as well (correlated). Tests over models are added. Profiles
    come from labmates profile (standard rules, no reasoning prompt), lab runs from labmates run science; models without
    one of the two are excluded and listed.
    """
    from labmates_profiles.prediction.report import forest_figure, predict_outcomes
    from labmates_profiles.prediction.sources import check_variant
    from labmates_profiles.prediction.tables import effects_table, least_squares, predictors_table, rows_frame
    from labmates_profiles.prediction.usefulness import answers_table

    check_variant(params.variant)
    material, outcomes, without = params.assembled(runs, params.variant)
    forms = tuple(dict.fromkeys(params.spec)) or FORMS
    results = predict_outcomes(outcomes, forms=forms, draws=params.draws, seed=params.draws_seed)
    answers = answers_table(outcomes, seed=params.draws_seed)
    left_out = [*without, *material.left_out]
    params.write_rows(lambda: rows_frame(outcomes))
    return Result(
        [
            answers,
            *(effects_table(form, results) for form in forms),
            least_squares_table({result.assembled.outcome: least_squares(result.assembled.data) for result in results}),
            predictors_table(results),
        ],
        [
            Drawing(
                "prediction",
                "What predicts lab outcomes",
                "Effects of games and controls with 95 % intervals; the numbers are in the tables.",
                lambda: forest_figure(results),
            )
        ],
        [f"{_name(result)}. {sentence}" for result in results for sentence in result.verdict],
        objects=[
            {
                "source": material.told,
                "left_out": [asdict(item) for item in left_out],
                "outcomes": [result.json() for result in results],
            }
        ],
        remarks=_remarks(results, left_out),
        warnings=[f"{_name(result)}, {warning}" for result in results for warning in result.warnings],
    )


def usefulness(runs: Runs, params: MaterialParams) -> Result:
    """Test whether games predict lab outcomes better than the mean of all models, without fitting a model.

    This is the permutation and leave-one-model-out test of labmates analyze prediction. It controls for benchmark
    scores, size and thinking if known for all models. Default outcomes: skill, quality and completeness.
    """
    from labmates_profiles.prediction.sources import COMPARED
    from labmates_profiles.prediction.usefulness import answers_table

    choice = params.choice()
    try:
        material = params.material(runs)
        choice = replace(choice, controls=choice.controls and material.benchmarked())
        outcomes, _ = material.assembled(choice, params.outcomes, COMPARED)
    except UsageError as error:
        raise TooFewRunsError(str(error)) from error
    table = answers_table(outcomes, seed=params.draws_seed)
    titles = [column.title for column in table.columns]
    rows = (dict(zip(titles, cells, strict=True)) for cells in table.cells(repeated=True))
    sentence = "Games predict {outcome} better than the models' mean: {better than the mean} (R² {R² with games})."
    return Result([table], verdict=[sentence.format_map(row) for row in rows])


def _name(result: OutcomeResult) -> str:
    return result.assembled.outcome.capitalize()


def _remarks(results: Sequence[OutcomeResult], left_out: Sequence[LeftOut]) -> dict[str, list[str]]:
    everything = [*left_out, *(item for result in results for item in result.assembled.left_out)]
    return {
        "Notes": [f"{_name(result)}: {note}" for result in results for note in result.assembled.notes],
        "Left out": list(dict.fromkeys(item.sentence for item in everything)),
    }


def check_prediction(runs: Runs, params: PredictionCheckParams) -> Result:
    """Check the prediction of lab outcomes from games: fit, models left out, and priors.

    For each fit: a posterior predictive check with p values, a comparison of forms by how well they predict each model
    left out in turn, and the sensitivity of each mean to the priors.
    """
    from labmates_profiles.prediction.evaluated import block, evaluated
    from labmates_profiles.prediction.fit import fit_prediction

    _, outcomes, _ = params.assembled(runs)
    how: dict[str, Any] = {"draws": params.draws, "seed": params.draws_seed}
    forms = tuple(dict.fromkeys(params.spec)) or FORMS

    def comparison(outcome: str, data: PredictionData) -> Table:
        def without(form: Form, at: int) -> Block:
            return block(fit_prediction(data.without(at), form, starts=1, **how), data, at)

        return compared(outcome, data.models, forms, without, seed=params.draws_seed, watch=runs.watch)

    fits = [
        evaluated(fit_prediction(outcome.data, form, **how), outcome.outcome, **how)
        for outcome in outcomes
        for form in forms
    ]
    return checked(fits, [comparison(outcome.outcome, outcome.data) for outcome in outcomes] if params.left_out else [])


PREDICTION = Analysis(
    "prediction",
    "Prediction of lab outcomes from games",
    PredictionParams,
    prediction,
    example="labmates analyze prediction --study science-sample --outcome skill",
    choices=("study",),
    objects="",
    has_figures=True,
)
USEFULNESS = Analysis(
    "usefulness",
    "Prediction from profiles",
    MaterialParams,
    usefulness,
    example="labmates analyze usefulness --study science-sample",
    choices=("study",),
    shown_for=("science",),
)
CHECK_PREDICTION = Analysis(
    "check/prediction",
    "Checks of the prediction of lab outcomes",
    PredictionCheckParams,
    check_prediction,
    example="labmates analyze check prediction --outcome quality --spec robust",
    choices=("study",),
    objects="",
)
