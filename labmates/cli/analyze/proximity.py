"""``labmates analyze proximity``: what drives how cooperative play is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from labmates.cli.analyze.taking import MOST_DRAWS, covariate_option, draws_option, rows_option, write_draws, write_rows
from labmates.cli.common import F, json_option, store_option
from labmates.cli.console import clean, out, print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labmates.workflows.games.proximity.observations import Observations
    from labmates.workflows.games.proximity.report import ProximityReport

_BOTH = ("paper", "robust")


def source_options(function: F) -> F:
    """Add the options that say which simulations are explained, and what of them."""
    parts = (
        click.argument("study", required=False),
        click.option(
            "--data",
            type=click.Path(dir_okay=False, path_type=Path),
            help="A CSV file with one row per simulation, in the place of a store.",
        ),
        click.option(
            "--roster",
            "rosters",
            multiple=True,
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="A CSV file of further models: name, family, size (billions), thinking (yes or no); repeatable.",
        ),
        click.option(
            "--outcome",
            type=click.Choice(["cooperation", "efficiency", "proximity"]),
            default="cooperation",
            show_default=True,
            help="What is explained: cooperation, by what was done; efficiency, by what came of it; or the paper's "
            "proximity, which is 1 - cooperation.",
        ),
        click.option(
            "--question",
            type=click.Choice(["strategy", "prompt"]),
            default="strategy",
            show_default=True,
            help="What drives cooperation; or whether the wording of the rules matters.",
        ),
    )
    for part in reversed(parts):
        function = part(function)
    return function


@click.command("proximity", epilog="Example: labmates analyze proximity pilot --spec both --plot forest.pdf")
@source_options
@click.option("--spec", type=click.Choice([*_BOTH, "both"]), default="both", show_default=True, help="What is fitted.")
@click.option("--draws", type=click.IntRange(500, 1_000_000), default=4000, show_default=True, help="Of the posterior.")
@click.option("--check-nuts", is_flag=True, help="Fit it once more by NUTS (extra 'analysis'); takes a minute or more.")
@click.option(
    "--nuts-draws", type=click.IntRange(100, 100_000), default=1000, show_default=True, help="In each of four chains."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of draws and permutations."
)
@covariate_option
@rows_option
@draws_option
@plot_option("coefficients")
@json_option()
@out_option
@store_option
def proximity(
    study: str | None,
    data: Path | None,
    rosters: tuple[Path, ...],
    spec: str,
    plot: Path | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
    check_nuts: bool,
    nuts_draws: int,
    covariates: tuple[str, ...],
    rows_file: Path | None,
    draws_file: Path | None,
    **settings: Any,
) -> int:
    """Tell what drives how cooperatively models play.

    A Bayesian regression of cooperation (0 at the equilibrium, 1 at the play that is best for all) on size, thinking,
    prompts, group size and game, over the simulations of behavioural games of the store, of a STUDY, or of a CSV file.
    Two specifications stand side by side: the paper's, which takes simulations of a model for independent of each
    other, and a robust one, in which models also differ by themselves; rest conclusions on the latter. Ends with a
    verdict in plain words.
    """
    from labmates.stats.bayes.covariates import read_covariates
    from labmates.workflows.games.proximity.evaluated import evaluated
    from labmates.workflows.games.proximity.report import proximity_json, proximity_report, proximity_tables

    report = proximity_report(
        observations_of(study, data, rosters, store),
        specifications=_BOTH if spec == "both" else (spec,),  # type: ignore[arg-type]
        nuts_draws=nuts_draws if check_nuts else None,
        covariates=read_covariates(covariates, [*rosters, *([data] if data else [])]),
        **settings,
    )
    tables = proximity_tables(report)
    if as_json:
        print_json(proximity_json(report))
    else:
        print_tables(tables)
        _print(report)
    write_files(tables, files)
    write_rows(report.prepared.frame, rows_file)
    how = {"draws": min(settings["draws"], MOST_DRAWS), "seed": settings["seed"]}
    write_draws(lambda: [evaluated(one, settings["outcome"], **how) for one in report.fits], draws_file)
    if plot is not None:
        from labmates.workflows.games.proximity.figures import forest_figure

        draw(forest_figure(report), plot)
    return 0


def observations_of(study: str | None, data: Path | None, rosters: Sequence[Path], store: str | None) -> Observations:
    """Return the simulations of a file, or of a study or all of a store.

    Raises
    ------
    UsageError
        If both are given, or something is wrong with one.
    """
    from labmates.models.roster import read_roster, roster
    from labmates.records.selection import select_runs
    from labmates.records.store import Store
    from labmates.workflows.games.proximity.observations import observations_of_csv, observations_of_runs

    named = click.get_current_context().get_parameter_source("store") == ParameterSource.COMMANDLINE
    if data is not None and (study is not None or named):
        raise UsageError("--data takes the place of a store: give a file, or a study and --store, not both")
    known = [*roster(), *(model for path in rosters for model in read_roster(path))]
    if data is not None:
        return observations_of_csv(data, known)
    with Store(store, must_exist=True) as database:
        return observations_of_runs(select_runs(database, kind="game", study=study), known)


def _print(report: ProximityReport) -> None:
    _paragraphs("What it says", report.verdict)
    beside = report.checks
    tests = [
        f"{name}: p = {one.p:.3g} ({beside.p_holm[name]:.3g} after Holm's adjustment) over {one.units} models "
        f"({one.permutations:,} permutations)"
        for name, one in beside.tests.items()
    ]
    if beside.left_out_r2 is not None:
        tests.append(f"R² for models left out one at a time: {beside.left_out_r2:.2f}")
    tests += [f"variance inflation of {name}: {value:.1f}" for name, value in beside.inflation.items()]
    tests += [f"largest leverage: {model} {value:.2f}" for model, value in list(beside.leverage.items())[:1]]
    _paragraphs("Over models", tests)
    draws = [
        f"{one.specification}: {one.posterior.diagnostics.effective:,.0f} effective draws, "
        f"k-hat {one.posterior.diagnostics.k_hat:.2f}"
        for one in report.fits
    ]
    _paragraphs("Draws", [*draws, *(one.sentence for one in report.cross_checks)])
    dropped = [f"{one.specification}: {note}" for one in report.fits for note in one.notes]
    _paragraphs("Notes", [*report.prepared.notes, *dropped])
    _paragraphs("Left out", [f"{one.what}: {one.rows} rows, {one.reason}" for one in report.prepared.left_out])
    _paragraphs("Warnings", report.warnings, style="red")


def _paragraphs(heading: str, lines: Any, style: str = "") -> None:
    if not lines:
        return
    out().print(f"\n{heading}", style=f"bold {style}".strip(), markup=False)
    for line in lines:
        out().print(f"- {clean(line)}", style=style or None, markup=False, highlight=False)
