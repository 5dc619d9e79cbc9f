"""The report on the regression of cooperation: fits, checks, tables and JSON data.

Source: the cooperative-profiles paper (arXiv:2604.20658), section 3.1.3, Tables 1, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from labmates.stats.figures import new_figure
from labmates.stats.multiplicity import mark
from labmates.stats.tables import Column, Table
from labmates_profiles.bayes.covariates import PREFIX, Covariates
from labmates_profiles.bayes.figures import draw_forest
from labmates_profiles.bayes.importance import DRAWS
from labmates_profiles.bayes.posterior import adjusted
from labmates_profiles.clustered import clustered_ols
from labmates_profiles.fitted import least_squares_table
from labmates_profiles.proximity.cells import GAME_PREFIX, INTERCEPT, PREDICTORS, REFERENCE_GAME, label
from labmates_profiles.proximity.checks import Checks, checks, verdict
from labmates_profiles.proximity.fit import (
    DEVIATION,
    FAMILY_PREFIX,
    R_SQUARED,
    SPECIFICATIONS,
    Fit,
    Specification,
    fit,
)
from labmates_profiles.proximity.mixed import CELL, FAMILY, GAME, MODEL, RESIDUAL, SLOPES
from labmates_profiles.proximity.observations import OUTCOMES, Observations
from labmates_profiles.proximity.prepare import Prepared, Question, prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES: Final = {
    "cooperation": "cooperation (0: equilibrium, 1: social optimum)",
    "efficiency": "efficiency (0: equilibrium, 1: social optimum)",
    "pareto_proximity": "Pareto proximity (0: social optimum, 1: equilibrium)",
}
"""Axis labels of these metrics, with their direction."""
PUBLISHED: Final[Mapping[str, float]] = {
    INTERCEPT: 0.853,
    "size": -0.051,
    "thinking": 0.029,
    "cot": 0.0,
    "tom": -0.038,
    "group_size": -0.001,
    "game:common-pool": -0.060,
    "game:common-pool-sanctions": -0.008,
    "game:o-ring": -0.328,
    "game:public-goods": -0.164,
    "game:weakest-link": -0.540,
}
"""The coefficients printed in the paper (Table 6)."""
_DEVIATIONS: Final = {
    **{name: f"σ ({name})" for name in (RESIDUAL, FAMILY, MODEL)},
    **{name: f"σ (model's reaction to {PREDICTORS[name].reaction})" for name in SLOPES},
    GAME: "σ (model × game)",
    CELL: "σ (cell)",
}


def forest_figure(report: ProximityReport) -> Figure:
    """Posterior means and 95 % intervals of coefficients; games have a separate panel with a wider scale."""
    names = report.prepared.cells.names
    others = [name for name in names if not name.startswith(GAME_PREFIX)]
    games = [name for name in names if name.startswith(GAME_PREFIX)]
    parts = [
        (part, title)
        for part, title in (
            (others, "Models, prompts and groups"),
            (games, f"Games, compared with {report.prepared.reference}"),
        )
        if part
    ]
    heights = [len(part) + 0.8 for part, _ in parts]
    figure, axes = new_figure(6.8, 1.5 + 0.42 * sum(heights), rows=max(len(parts), 1), height_ratios=heights or None)
    fits = {f"{each.specification} (95 % interval)": each.posterior for each in report.fits}
    for ax, (part, title) in zip(axes, parts, strict=False):
        draw_forest(ax, part, fits, label, title)
    outcome = report.prepared.outcome
    ways = ["← nearer to the equilibrium", "nearer to the optimum →"]
    if outcome == "proximity":
        ways = ["← nearer to the optimum", "nearer to the equilibrium →"]
    axes[-1].set_xlabel(f"effect on {outcome}\n{'      '.join(ways)}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize=8)
    return figure


@dataclass(frozen=True)
class ProximityReport:
    """The fits, checks and verdict on one question."""

    prepared: Prepared
    fits: tuple[Fit, ...]
    checks: Checks
    verdict: tuple[str, ...]

    @cached_property
    def p_holm(self) -> dict[Specification, dict[str, float]]:
        """Adjusted p of each specification's effects by name: of all predictors together, and of all families."""
        p_of: dict[Specification, dict[str, float]] = {}
        for fitted in self.fits:
            families = [name for name in fitted.posterior.names if name.startswith(FAMILY_PREFIX)]
            [p_of[fitted.specification]] = adjusted([fitted.posterior], [self.prepared.cells.names], [families])
        return p_of

    @property
    def warnings(self) -> list[str]:
        """The problems of the draws, and their remedies."""
        return [f"{fit.specification}: {text}" for fit in self.fits for text in fit.posterior.diagnostics.warnings]


def proximity_report(
    observations: Observations,
    *,
    outcome: str = "cooperation",
    question: Question = "strategy",
    specifications: Sequence[Specification] = SPECIFICATIONS,
    draws: int = DRAWS,
    seed: int = 0,
    covariates: Covariates | None = None,
) -> ProximityReport:
    """Fit the regression of proximity to observations.

    Parameters
    ----------
    outcome
        ``cooperation``, ``efficiency``, or ``proximity``, the paper's distance.
    question
        ``strategy`` (Table 1), or ``prompt``: whether the wording matters (Table 5).
    covariates
        The user's predictors of models; see `labmates_profiles.bayes.covariates`.

    Raises
    ------
    UsageError
        If the data are insufficient (see `prepare`).
    """
    prepared = prepare(observations, outcome=outcome, question=question, covariates=covariates)
    fits = tuple(fit(prepared.cells, name, draws=draws, seed=seed) for name in specifications)
    beside = checks(prepared.cells, seed=seed)
    return ProximityReport(prepared, fits, beside, tuple(verdict(fits, beside, outcome)))


def proximity_tables(report: ProximityReport) -> list[Table]:
    """The table of coefficients in the layout of the paper's Table 1, and that of families as in its Table 6."""
    prepared, cells = report.prepared, report.prepared.cells
    outcome = OUTCOMES[prepared.outcome].replace("_", " ")
    columns = []
    for fit_ in report.fits:
        name = fit_.specification
        columns += [
            Column(name, "β", "+.3f", group=name, marked=f"{name}_mark"),
            Column(name, "95 % CI", "+.3f", shows="interval", group=name),
        ]
    notes = [
        f"{cells.rows:,} simulations in {len(cells.count):,} cells, {len(cells.models)} models, "
        f"{len(cells.games)} games; {AXES[OUTCOMES[prepared.outcome]]}.",
        "† the 95 % interval excludes 0; ‡ also after Holm's adjustment for all predictors, p < .05.",
    ]
    many = len(columns)
    if printed := printed_coefficients(prepared):
        columns.append(Column("printed", "β", "+.3f", group="printed in Table 6"))
        notes.append("Printed: of the cooperative-profiles paper, whose data were other runs.")
    first = [Column("category", once=True), Column("predictor")]
    rows = [{**row, "printed": printed.get(row["parameter"])} if printed else row for row in _rows(report)]
    tables = [
        Table("coefficients", f"Regression of {outcome}", [*first, *columns], rows, notes),
    ]
    estimates = clustered_ols(cells.design, cells.mean, cells.model, cells.count)
    names = [label(name) for name in (INTERCEPT, *cells.names)]
    tables.append(least_squares_table({outcome: (names, estimates)}))
    if len(cells.families) > 1:
        rows = [_row(report, "Family", FAMILY_PREFIX + name, name) for name in cells.families]
        tables.append(Table("families", "Family intercepts", [Column("predictor", "family"), *columns[:many]], rows))
    return tables


def printed_coefficients(prepared: Prepared) -> Mapping[str, float]:
    """The coefficients printed in the paper, if ours have the same outcome, question and reference."""
    same = (prepared.outcome, prepared.question, prepared.reference) == ("proximity", "strategy", REFERENCE_GAME)
    return PUBLISHED if same else {}


def _rows(report: ProximityReport) -> Iterator[dict[str, Any]]:
    names = (INTERCEPT, *report.prepared.cells.names)
    for name in names:
        other = "Covariate" if name.startswith(PREFIX) else f"Game (ref: {report.prepared.reference})"
        yield _row(report, PREDICTORS[name].category if name in PREDICTORS else other, name, label(name))
    for name, text in _DEVIATIONS.items():
        if any(DEVIATION + name in each.posterior.names for each in report.fits):
            yield _row(report, "Variance", DEVIATION + name, text)
    yield _row(report, "Fit", R_SQUARED, "R²")


def _row(report: ProximityReport, category: str, name: str, text: str) -> dict[str, Any]:
    row: dict[str, Any] = {"category": category, "predictor": text, "parameter": name}
    for fitted in report.fits:
        summary = fitted.posterior.summaries.get(name)
        effect = name != R_SQUARED and not name.startswith(DEVIATION)
        spec, p_holm = fitted.specification, report.p_holm[fitted.specification]
        row |= {
            spec: None if summary is None else summary.mean,
            f"{spec}_sd": None if summary is None else summary.sd,
            f"{spec}_low": None if summary is None else summary.low,
            f"{spec}_high": None if summary is None else summary.high,
            f"{spec}_positive": None if summary is None or not effect else summary.positive,
            f"{spec}_credible": None if summary is None or not effect else summary.credible,
            f"{spec}_p_holm": p_holm.get(name),
            f"{spec}_mark": mark(summary is not None and summary.credible and name in p_holm, p_holm.get(name)),
        }
    return row


def proximity_json(report: ProximityReport) -> dict[str, Any]:
    """A report as JSON data: the content of the text, unrounded."""
    cells, beside = report.prepared.cells, report.checks
    return {
        "question": report.prepared.question,
        "outcome": OUTCOMES[report.prepared.outcome],
        "reference_game": report.prepared.reference,
        "rows": cells.rows,
        "cells": len(cells.count),
        "models": list(cells.models),
        "families": list(cells.families),
        "games": list(cells.games),
        "left_out": [asdict(each) for each in report.prepared.left_out],
        "notes": list(report.prepared.notes),
        "fits": [
            {
                "specification": fit.specification,
                **fit.posterior.json(report.p_holm[fit.specification]),
                "notes": list(fit.notes),
            }
            for fit in report.fits
        ],
        "checks": {
            "tests": {name: {**asdict(test), "p_holm": beside.p_holm[name]} for name, test in beside.tests.items()},
            "leave_one_out_r2": beside.left_out_r2,
            "variance_inflation": {name: _finite(value) for name, value in beside.inflation.items()},
            "leverage": beside.leverage,
        },
        "warnings": report.warnings,
        "verdict": list(report.verdict),
    }


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
