"""``labmates analyze check``: do the fitted models fit, which form predicts best, and how much do priors matter?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.analyze.prediction import FORMS
from labmates.cli.analyze.proximity import observations_of, source_options
from labmates.cli.analyze.taking import covariate_option
from labmates.cli.common import F, json_option, store_option
from labmates.cli.console import err, out, print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.predicting import Asked, check_outcomes, choice_of, material_of, material_options
from labmates.cli.tables import out_option, print_tables, write_files

if TYPE_CHECKING:
    from labmates.stats.bayes.blocks import Evaluated
    from labmates.stats.bayes.fit_checks import LeftOut
    from labmates.stats.tables import Table
    from labmates.workflows.games.prediction.density import Form

SHOWN = 10
"""Rows of the long tables that are printed; files and --json have all."""


@click.group(epilog="Example: labmates analyze check proximity pilot --plot check.pdf")
def check() -> None:
    """Check the fits of analyze proximity and analyze prediction.

    For each fit: observed outcomes beside what it predicts, with p values; forms compared by how they predict models
    that are left out in turn; and how far each mean depends on the priors.
    """


def _check_options(function: F) -> F:
    parts = (
        click.option(
            "--left-out/--no-left-out",
            default=True,
            show_default=True,
            help="Fit anew without each model in turn, to compare forms; takes a fit for each model and form.",
        ),
        click.option("--draws", type=click.IntRange(500, 20_000), default=2000, show_default=True, help="Of each fit."),
        covariate_option,
        plot_option("observed against predicted outcomes"),
        json_option(),
        out_option,
    )
    for part in reversed(parts):
        function = part(function)
    return function


@check.command("proximity", epilog="Example: labmates analyze check proximity --data runs.csv --no-left-out")
@source_options
@_check_options
@click.option("--spec", type=click.Choice(["paper", "robust", "both"]), default="both", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of draws.")
@store_option
def check_proximity(
    study: str | None,
    data: Path | None,
    rosters: tuple[Path, ...],
    outcome: str,
    question: Any,
    covariates: tuple[str, ...],
    spec: str,
    draws: int,
    left_out: bool,
    seed: int,
    store: str | None,
    **shown: Any,
) -> int:
    """Check the regression of cooperation in games: by cell, by model left out, and by prior."""
    from labmates.stats.bayes.covariates import read_covariates
    from labmates.stats.bayes.fit_checks import comparison_table
    from labmates.stats.bayes.fit_checks import left_out as leave_out
    from labmates.workflows.games.proximity.evaluated import block, evaluated, without
    from labmates.workflows.games.proximity.fit import SPECIFICATIONS, fit
    from labmates.workflows.games.proximity.prepare import prepare

    own = read_covariates(covariates, [*rosters, *([data] if data else [])])
    observations = observations_of(study, data, rosters, store)
    cells = prepare(observations, outcome=outcome, question=question, covariates=own).cells
    chosen = SPECIFICATIONS if spec == "both" else [one for one in SPECIFICATIONS if one == spec]
    found, compared = [], []
    for one in chosen:
        found.append(evaluated(fit(cells, one, draws=draws, seed=seed), outcome, draws=draws, seed=seed))
        if left_out:
            blocks = (
                block(fit(without(cells, at), one, draws=draws, seed=seed), cells, at, draws)
                for at in _watched(range(len(cells.models)), f"{one}, without", cells.models)
            )
            compared.append(leave_out(one, cells.models, blocks, seed=seed))
    tables = [comparison_table("cooperation", compared)] if compared else []
    return _show(found, tables, **shown)


@check.command("prediction", epilog="Example: labmates analyze check prediction --outcome quality --spec robust")
@material_options
@_check_options
@click.option("--spec", "forms", multiple=True, type=click.Choice(FORMS), help="Form; repeatable. Default: all three.")
def check_prediction(
    asked: Asked, covariates: tuple[str, ...], forms: tuple[Any, ...], draws: int, left_out: bool, **shown: Any
) -> int:
    """Check the prediction of lab outcomes from games: by observation, by model left out, and by prior."""
    from labmates.stats.bayes.covariates import read_covariates
    from labmates.stats.bayes.fit_checks import comparison_table
    from labmates.stats.bayes.fit_checks import left_out as leave_out
    from labmates.workflows.games.prediction.assembly import assemble, assemble_all
    from labmates.workflows.games.prediction.density import FORMS as ALL_FORMS
    from labmates.workflows.games.prediction.evaluated import block, evaluated
    from labmates.workflows.games.prediction.fit import fit_prediction

    check_outcomes(asked)
    files = [path for path in (*asked.rosters, asked.games_file, asked.lab_file) if path is not None]
    choice = replace(choice_of(asked), covariates=read_covariates(covariates, files))
    material = material_of(asked, {})
    traits = material.traits()
    outcomes, _ = assemble_all(
        asked.outcomes, lambda outcome: assemble(outcome, material.levels, material.observations, traits, choice)
    )
    found: list[Evaluated] = []
    tables: list[Table] = []
    how = {"draws": draws, "seed": asked.draws_seed}
    chosen: tuple[Form, ...] = tuple(dict.fromkeys(forms)) or ALL_FORMS
    for one in outcomes:
        compared: list[LeftOut] = []
        for form in chosen:
            found.append(evaluated(fit_prediction(one.data, form, **how), one.outcome, **how))
            if left_out:
                blocks = (
                    block(fit_prediction(one.data.without(at), form, starts=1, **how), one.data, at)
                    for at in _watched(range(len(one.data.models)), f"{one.outcome}, {form}, without", one.data.models)
                )
                compared.append(leave_out(form, one.data.models, blocks, seed=asked.draws_seed))
        if compared:
            tables.append(comparison_table(one.outcome, compared))
    return _show(found, tables, **shown)


def _watched(places: range, what: str, models: Sequence[str]) -> Any:
    for at in places:
        err().print(f"{what} {models[at]} ({at + 1} of {len(models)})", markup=False)
        yield at


def _show(
    found: Sequence[Evaluated],
    compared: Sequence[Table],
    *,
    plot: Path | None,
    as_json: bool,
    files: tuple[Path, ...],
) -> int:
    from labmates.stats.bayes import fit_checks as checks
    from labmates.stats.bayes.check_figures import check_figure

    tables = [*compared]
    for one in found:
        tables += [checks.statistics_table(one), checks.cells_table(one), checks.sensitivity_table(one)]
    said = [checks.verdict(one) for one in found]
    if as_json:
        print_json({"verdict": said, "tables": [table.as_json() for table in tables]})
    else:
        for line in said:
            out().print(line, markup=False, highlight=False)
        print_tables([_first(table) for table in tables])
    write_files(tables, files)
    if plot is not None:
        draw(check_figure(found), plot)
    return 0


def _first(table: Table) -> Table:
    from labmates.stats.tables import Table

    if len(table.rows) <= SHOWN:
        return table
    more = f"The first {SHOWN} of {len(table.rows)} rows; --out and --json have all."
    return Table(table.name, table.title, table.columns, table.rows[:SHOWN], [*table.notes, more])
