"""Options of the analyses that are fitted: the user's own predictors, and what is taken away as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import F
from labmates.cli.console import err
from labmates.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from labmates.stats.bayes.blocks import Evaluated

MOST_DRAWS = 4000
"""Draws of each fit in a file: log likelihoods of all cells are as many times as large."""
_ROWS = (".csv", ".parquet")


def covariate_option(function: F) -> F:
    """Add ``--covariate``, as `covariates`: names of columns."""
    return click.option(
        "--covariate",
        "covariates",
        multiple=True,
        metavar="COLUMN",
        help="A predictor of your own, numbers or categories: a column of a file of --roster, or of the files of data, "
        "with one value for each model; repeatable.",
    )(function)


def rows_option(function: F) -> F:
    """Add ``--rows-out``, as `rows_file`: a path whose ending is .csv or .parquet and whose folder is there."""

    def check(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            from labmates.stats.table_files import check_table

            if path.suffix.lower() not in _ROWS:
                raise UsageError(f"--rows-out ends in {' or '.join(_ROWS)}, not '{path.name}'")
            check_table(path)
        return path

    return click.option(
        "--rows-out",
        "rows_file",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=check,
        metavar="FILE",
        help="Write the rows as analysed, after all exclusions, with their predictors: .csv or .parquet.",
    )(function)


def draws_option(function: F) -> F:
    """Add ``--draws-out``, as `draws_file`: a path whose ending is .nc and whose folder is there."""

    def check(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            from labmates.stats.bayes.inference_data import check_netcdf

            check_netcdf(path)
        return path

    return click.option(
        "--draws-out",
        "draws_file",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=check,
        metavar="FILE",
        help="Write draws from posterior and prior, log likelihoods and replications as netCDF (.nc) for ArviZ; "
        "of several fits a file each (extra 'analysis').",
    )(function)


def write_draws(found: Callable[[], list[Evaluated]], path: Path | None) -> None:
    """Write evaluated fits to the file that `draws_option` took, if any."""
    if path is not None:
        from labmates.stats.bayes.inference_data import write_netcdf

        for written in write_netcdf(found(), path):
            err().print(f"Written to {written}", markup=False)


def write_rows(frame: pd.DataFrame, path: Path | None) -> None:
    """Write rows to the file that `rows_option` took, if any."""
    if path is not None:
        from labmates.cli.tables import write_files
        from labmates.stats.tables import Table

        write_files([Table("rows", "Rows as analysed", None, frame)], [path])
