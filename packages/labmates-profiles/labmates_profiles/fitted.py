"""Common parts of fitted analyses: parameters, files of rows and draws, and checks of their fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import AfterValidator, Field, FilePath

from labmates.workflows.protocol.analysis import Params, Result

if TYPE_CHECKING:
    import pandas as pd

    from labmates.stats.intervals import Estimate
    from labmates.stats.tables import Table
    from labmates_profiles.bayes.blocks import Block, Evaluated

FormT = TypeVar("FormT", bound=str)


class FitParams(Params):
    """User-supplied facts about the models."""

    rosters: tuple[FilePath, ...] = Field(
        (),
        description="A CSV file of additional models with the columns name, family, size (billions), thinking (yes "
        "or no), mmlu_pro, ifeval and served (other names, separated by spaces); repeatable.",
    )
    covariates: tuple[str, ...] = Field(
        (),
        description="Your own predictor, numbers or categories: a column of a --roster file or of the data files, "
        "with one value per model; repeatable.",
    )


class CheckParams(Params):
    """The checks of fits."""

    left_out: bool = Field(
        True,
        description="Refit without each model in turn, to compare forms; this takes one fit per model and form. "
        "[default: on]",
    )
    draws: int = Field(2000, ge=500, le=20_000, description="Posterior draws per fit.")


def _table_file(path: Path) -> Path:
    from labmates.stats.table_files import check_table

    check_table(path)
    return path


class RowsParams(Params):
    """A file for the analysed rows."""

    rows_out: Annotated[Path, AfterValidator(_table_file)] | None = Field(
        None,
        description="Write the analysed rows, after all exclusions, with their predictors: .csv or .parquet.",
    )

    def write_rows(self, rows: Callable[[], pd.DataFrame]) -> None:
        """Write the rows if a file is named."""
        from labmates.stats.table_files import write_tables
        from labmates.stats.tables import Table

        if self.rows_out is not None:
            write_tables([Table("rows", "Rows as analysed", None, rows())], self.rows_out)


def least_squares_table(fits: Mapping[str, tuple[Sequence[str], list[Estimate] | None]]) -> Table:
    """Coefficients of least squares with errors clustered by model, as a plain check beside the Bayesian fits.

    Parameters
    ----------
    fits
        By outcome, the labels of the coefficients and their estimates, as from `clustered_ols`.
    """
    from labmates.stats.tables import Column, Table

    rows = [
        {"outcome": outcome, "predictor": label, **estimate.row("beta"), "p": estimate.p}
        for outcome, (labels, estimates) in fits.items()
        for label, estimate in zip(labels, estimates or (), strict=bool(estimates))
    ]
    notes = [
        "Least squares on the observed means, intervals with errors clustered by model: a check that shares nothing "
        "with the fits above. With few models the intervals are too narrow, and errors in the predictors are ignored."
    ]
    notes += [f"{outcome}: too few models for the predictors." for outcome, (_, found) in fits.items() if not found]
    columns = [Column("outcome", once=True), Column("predictor"), Column("beta", "β", "+.3f")]
    columns += [Column("beta", "95 % CI", "+.3f", shows="interval"), Column("p", form=".3f")]
    return Table("least-squares", "Least squares, clustered by model", columns, rows, notes)


def compared(
    outcome: str,
    models: Sequence[str],
    forms: Sequence[FormT],
    block: Callable[[FormT, int], Block],
    *,
    seed: int,
    watch: Callable[[str], None],
) -> Table:
    """Forms of a model of an outcome by their predictions for models left out in turn.

    Parameters
    ----------
    block
        The prediction of a form, fitted without a model given by its index, for that model.
    """
    from labmates_profiles.bayes.fit_checks import comparison_table, left_out

    def blocks(form: FormT) -> Iterator[Block]:
        for place, model in enumerate(models):
            watch(f"{outcome}, {form}, without {model} ({place + 1} of {len(models)})")
            yield block(form, place)

    return comparison_table(outcome, {form: left_out(models, blocks(form), seed=seed) for form in forms})


def checked(fits: Sequence[Evaluated], comparisons: Sequence[Table]) -> Result:
    """The checks of fits: comparisons of forms, then for each fit the data, the cells and the priors."""
    from labmates_profiles.bayes import fit_checks

    tables = [*comparisons]
    for fit in fits:
        tables += [fit_checks.statistics_table(fit), fit_checks.cells_table(fit), fit_checks.sensitivity_table(fit)]
    verdict = [fit_checks.verdict(fit) for fit in fits]
    return Result(
        tables,
        verdict=verdict,
        objects=[{"verdict": verdict, "tables": [table.as_json() for table in tables]}],
    )
