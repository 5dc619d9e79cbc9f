"""``labmates analyze prediction``: do game dispositions predict lab outcomes?"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.analyze.taking import MOST_DRAWS, covariate_option, draws_option, rows_option, write_draws, write_rows
from labmates.cli.common import json_option
from labmates.cli.console import err, out, print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.predicting import (
    Asked,
    check_outcomes,
    choice_of,
    material_of,
    material_options,
    print_left_out,
)
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labmates.workflows.games.prediction.sources import LeftOut
    from labmates.workflows.games.prediction.tables import OutcomeResult

FORMS = ("paper", "robust", "correlated")


@click.command("prediction", epilog="Example: labmates analyze prediction --study science-sample --outcome skill")
@material_options
@click.option(
    "--spec",
    "forms",
    multiple=True,
    type=click.Choice(FORMS),
    help="Form of the model; repeatable. Default: all three.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME=VALUE",
    help="Profiles from simulations of another condition than the usual, such as reasoning=cot; repeatable.",
)
@click.option(
    "--draws", type=click.IntRange(500, 100_000), default=4000, show_default=True, help="From each posterior."
)
@click.option("--check-nuts", is_flag=True, help="Fit all once more by NUTS, which takes minutes (extra 'analysis').")
@covariate_option
@rows_option
@draws_option
@plot_option("a forest plot")
@json_option()
@out_option
def prediction(
    asked: Asked,
    forms: tuple[Any, ...],
    variants: tuple[str, ...],
    draws: int,
    check_nuts: bool,
    covariates: tuple[str, ...],
    rows_file: Path | None,
    draws_file: Path | None,
    plot: Path | None,
    as_json: bool,
    files: tuple[Path, ...],
) -> int:
    """Tell whether models' game dispositions predict how their teams do in the lab.

    The cooperative-profiles paper's model with errors of measurement, as it is published (paper), with a random
    intercept per model (robust), and also with correlated dispositions (correlated); beside these, tests over models.
    Profiles are those of labmates profile (usual rules, no prompt to reason), lab runs those of labmates run science;
    models that lack one of them are left out, and listed.
    """
    from labmates.stats.bayes.covariates import read_covariates
    from labmates.workflows.games.prediction.assembly import assemble, assemble_all
    from labmates.workflows.games.prediction.evaluated import evaluated
    from labmates.workflows.games.prediction.figures import forest_figure
    from labmates.workflows.games.prediction.report import predict_outcomes
    from labmates.workflows.games.prediction.tables import effects_table, predictors_table, rows_frame
    from labmates.workflows.games.prediction.usefulness import answers_table

    check_outcomes(asked)
    tables_of_models = [path for path in (*asked.rosters, asked.games_file, asked.lab_file) if path is not None]
    choice = replace(choice_of(asked), covariates=read_covariates(covariates, tables_of_models))
    material = material_of(asked, variants_of(variants))
    traits = material.traits()
    outcomes, without = assemble_all(
        asked.outcomes, lambda outcome: assemble(outcome, material.levels, material.observations, traits, choice)
    )
    left_out = [*without, *material.left_out]
    chosen = tuple(dict.fromkeys(forms)) or FORMS
    results = predict_outcomes(
        outcomes,
        forms=chosen,
        draws=draws,
        seed=asked.draws_seed,
        check=check_nuts,
        watch=_watch if check_nuts and not as_json else None,
    )
    tables = [
        answers_table(outcomes, seed=asked.draws_seed),
        *(effects_table(form, results) for form in chosen),
        predictors_table(results),
    ]
    if as_json:
        left = [asdict(one) for one in left_out]
        print_json({"source": material.told, "left_out": left, "outcomes": [result.json() for result in results]})
    else:
        print_tables(tables)
        _print_rest(results, left_out)
    write_files(tables, files)
    write_rows(rows_frame(outcomes), rows_file)
    fits = [(one.assembled.outcome, fit) for one in results for fit in one.fits.values()]
    how = {"draws": min(draws, MOST_DRAWS), "seed": asked.draws_seed}
    write_draws(lambda: [evaluated(fit, name, **how) for name, fit in fits], draws_file)
    if plot is not None:
        draw(forest_figure(results), plot)
    return 0


def variants_of(texts: Sequence[str]) -> dict[str, str]:
    """Return other values of the condition of profiles.

    Raises
    ------
    UsageError
        If one is not of the form NAME=VALUE, or there is no such part of a condition.
    """
    from labmates.workflows.games.prediction.sources import USUAL

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in USUAL:
            raise UsageError(f"--variant takes NAME=VALUE with one of {', '.join(USUAL)}, not '{text}'")
        found[name] = value
    return found


def _watch(text: str) -> None:
    err().print(text, markup=False)


def _print_rest(results: Sequence[OutcomeResult], left_out: Sequence[LeftOut]) -> None:
    for result in results:
        out().print(f"\n{result.assembled.outcome.capitalize()}", style="bold")
        for sentence in result.verdict:
            out().print(f"  {sentence}", markup=False)
        for form, check in result.checks.items():
            out().print(f"  {_agreement(result, form, check)}", markup=False)
        for note in result.assembled.notes:
            out().print(f"  {note}", style="dim", markup=False)
        for warning in result.warnings:
            out().print(f"  Warning, {warning}", style="yellow", markup=False)
    everything = [*left_out, *(one for result in results for one in result.assembled.left_out)]
    print_left_out(list(dict.fromkeys(everything)))


def _agreement(result: OutcomeResult, form: Any, check: Any) -> str:
    from labmates.stats.bayes.posterior import furthest

    most, name = furthest(result.fits[form].posterior, check)
    return (
        f"{form} by NUTS: means differ by at most {most:.2f} posterior standard deviations ({name}); "
        f"R-hat {check.diagnostics.r_hat:.3f}."
    )
