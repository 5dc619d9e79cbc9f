"""The analyses of the factors behind cooperation in games: the regression, and checks of its fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Analysis, Drawing, Result, Runs
from labmates_profiles.fitted import CheckParams, FitParams, RowsParams, checked, compared
from labmates_profiles.proximity.observations import Team

if TYPE_CHECKING:
    from labmates_profiles.bayes.blocks import Block
    from labmates_profiles.bayes.covariates import Covariates
    from labmates_profiles.proximity.fit import Specification
    from labmates_profiles.proximity.observations import Observations
    from labmates_profiles.proximity.report import ProximityReport


class SimulationsParams(FitParams):
    """The simulations to explain, and their outcome."""

    data: Path | None = Field(None, description="A CSV file with one row per simulation, instead of a store.")
    outcome: Literal["cooperation", "efficiency", "proximity"] = Field(
        "cooperation",
        description="Outcome: cooperation (of actions), efficiency (of the resulting welfare), or the paper's "
        "proximity, 1 - cooperation.",
    )
    question: Literal["strategy", "prompt"] = Field(
        "strategy",
        description="Question: the factors behind cooperation (strategy) or the effect of the rules' wording (prompt).",
    )
    spec: Literal["paper", "robust", "both"] = Field("both", description="Specification to fit.")
    team: Team | None = Field(
        None,
        description="Include runs with players of several models, with the minimum or the mean of their sizes and "
        "thinking. Default: leave them out.",
    )
    seed: int = Field(0, ge=0, description="Seed of draws and permutations.")

    def specifications(self) -> tuple[Specification, ...]:
        """The specifications to fit."""
        return ("paper", "robust") if self.spec == "both" else (self.spec,)

    def own(self) -> Covariates:
        """The user's predictors; a `UsageError` if a file lacks one."""
        from labmates_profiles.bayes.covariates import read_covariates

        return read_covariates(self.covariates, [*self.rosters, *([self.data] if self.data else [])])

    def observations(self, runs: Runs) -> Observations:
        """The simulations of the file, or of a study or a whole store; a `UsageError` if both are given or invalid."""
        from labmates.models.roster import read_roster
        from labmates_profiles.proximity.observations import observations_of_csv, observations_of_runs

        if self.data is not None and (runs.study is not None or runs.url is not None):
            raise UsageError("--data replaces a store: give a file, or a study and --store, not both")
        more = [model for path in self.rosters for model in read_roster(path)]
        if self.data is not None:
            return observations_of_csv(self.data, more, self.team)
        return observations_of_runs(runs.records("game"), more, self.team)


class ProximityParams(RowsParams, SimulationsParams):
    """Parameters of the regression of cooperation."""

    draws: int = Field(4000, ge=500, le=1_000_000, description="Posterior draws.")


class ProximityCheckParams(CheckParams, SimulationsParams):
    """Parameters of the checks of the regression of cooperation."""


def proximity(runs: Runs, params: ProximityParams) -> Result:
    """Estimate which factors move play toward the social optimum.

    Fits a Bayesian regression of cooperation (0 at the equilibrium, 1 at the social optimum) on size, thinking,
    prompts, group size and game, to the simulations of behavioural games in the store, in a STUDY or in a CSV file. It
    compares two specifications: the paper's, which treats a model's simulations as independent, and a robust one with
    random differences between models. Base conclusions on the robust one.
    """
    from labmates_profiles.proximity.report import (
        forest_figure,
        proximity_json,
        proximity_report,
        proximity_tables,
    )

    report = proximity_report(
        params.observations(runs),
        outcome=params.outcome,
        question=params.question,
        specifications=params.specifications(),
        draws=params.draws,
        seed=params.seed,
        covariates=params.own(),
    )
    params.write_rows(lambda: report.prepared.frame)
    return Result(
        proximity_tables(report),
        [
            Drawing(
                "proximity",
                f"What drives {params.outcome}",
                "Coefficients with 95 % intervals; the numbers are in the tables.",
                lambda: forest_figure(report),
            )
        ],
        report.verdict,
        objects=[proximity_json(report)],
        remarks=_remarks(report),
        warnings=report.warnings,
    )


def _remarks(report: ProximityReport) -> dict[str, list[str]]:
    checks = report.checks
    tests = [
        f"{name}: p = {test.p:.3g} ({checks.p_holm[name]:.3g} after Holm's adjustment) over {test.units} models "
        f"({test.permutations:,} permutations)"
        for name, test in checks.tests.items()
    ]
    if checks.left_out_r2 is not None:
        tests.append(f"R² for models left out one at a time: {checks.left_out_r2:.2f}")
    tests += [f"variance inflation of {name}: {value:.1f}" for name, value in checks.inflation.items()]
    tests += [f"largest leverage: {model} {value:.2f}" for model, value in list(checks.leverage.items())[:1]]
    draws = [
        f"{fit.specification}: {fit.posterior.diagnostics.effective:,.0f} effective draws, "
        f"k-hat {fit.posterior.diagnostics.k_hat:.2f}"
        for fit in report.fits
    ]
    dropped = [f"{fit.specification}: {note}" for fit in report.fits for note in fit.notes]
    return {
        "Over models": tests,
        "Draws": draws,
        "Notes": [*report.prepared.notes, *dropped],
        "Left out": [f"{left.what}: {left.rows} rows, {left.reason}" for left in report.prepared.left_out],
    }


def check_proximity(runs: Runs, params: ProximityCheckParams) -> Result:
    """Check the regression of cooperation in games: fit, models left out, and priors.

    For each fit: a posterior predictive check with p values, a comparison of forms by how well they predict each model
    left out in turn, and the sensitivity of each mean to the priors.
    """
    from labmates_profiles.proximity.evaluated import block, evaluated, without
    from labmates_profiles.proximity.fit import fit
    from labmates_profiles.proximity.prepare import prepare

    observations = params.observations(runs)
    cells = prepare(observations, outcome=params.outcome, question=params.question, covariates=params.own()).cells
    how: dict[str, Any] = {"draws": params.draws, "seed": params.seed}

    def left_out(form: Specification, at: int) -> Block:
        return block(fit(without(cells, at), form, **how), cells, at)

    forms = params.specifications()
    fits = [evaluated(fit(cells, form, **how), params.outcome, **how) for form in forms]
    if not params.left_out:
        return checked(fits, [])
    comparison = compared(params.outcome, cells.models, forms, left_out, seed=params.seed, watch=runs.watch)
    return checked(fits, [comparison])


PROXIMITY = Analysis(
    "proximity",
    "What drives cooperation",
    ProximityParams,
    proximity,
    example="labmates analyze proximity pilot --spec both --plot forest.pdf",
    choices=("study_argument",),
    kind="game",
    objects="",
    has_figures=True,
    shown_for=(),
)
CHECK_PROXIMITY = Analysis(
    "check/proximity",
    "Checks of the regression of cooperation",
    ProximityCheckParams,
    check_proximity,
    example="labmates analyze check proximity --data runs.csv --no-left-out",
    choices=("study_argument",),
    kind="game",
    objects="",
    shown_for=(),
)
