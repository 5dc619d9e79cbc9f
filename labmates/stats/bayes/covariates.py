"""A user's own predictors of models: columns of a table, as columns of a regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from labmates.csv_rows import finite, read_rows
from labmates.display_names import short_names
from labmates.errors import UsageError
from labmates.stats.arrays import Array

PREFIX: Final = "covariate:"
"""What stands before the name of such a predictor."""
Covariates = Mapping[str, Mapping[str, str]]
"""By covariate, the values by model as they are written."""
_NAMES: Final = ("name", "model", "models")
_DETERMINED: Final = 1e-9


def read_covariates(wanted: Sequence[str], files: Sequence[Path]) -> dict[str, dict[str, str]]:
    """Read columns of tables that name a model in each row: a roster, simulations, profiles or lab runs.

    Raises
    ------
    UsageError
        If no file has a column, or a model has several values in it.
    """
    tables = [read_rows(path) for path in files] if wanted else []
    covariates: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(wanted):
        values: dict[str, set[str]] = {}
        mine = [rows for rows in tables if name in rows[0] and name not in _NAMES]
        if not mine:
            there = dict.fromkeys(column for rows in tables for column in rows[0] if column not in _NAMES)
            known = f"these have: {', '.join(there)}" if there else "give a table of models with --roster FILE"
            raise UsageError(f"--covariate: no file has a column '{name}'; {known}")
        for rows in mine:
            key = next((one for one in _NAMES if one in rows[0]), None)
            if key is None:
                raise UsageError(f"--covariate: the table with the column '{name}' has no column model or name")
            for row in rows:
                if row[name]:
                    values.setdefault(row[key].lower(), set()).add(row[name])
        for model, some in values.items():
            if len(some) > 1:
                raise UsageError(
                    f"--covariate {name}: {model} has several values ({', '.join(sorted(some)[:4])}); a covariate "
                    "is the same in all rows of a model"
                )
        covariates[name] = {model: next(iter(some)) for model, some in values.items()}
    return covariates


def covariate_columns(
    covariates: Covariates, models: Sequence[str], known: Array, known_names: Sequence[str]
) -> tuple[list[str], Array]:
    """Names and values of the columns of covariates, shape ``(models, columns)``.

    A covariate of numbers is on the scale of standard deviations between the models; of another there is a column for
    each value but the most frequent one, which the others are compared with.

    Parameters
    ----------
    known, known_names
        What else is known of the models, shape ``(models, k)``.

    Raises
    ------
    UsageError
        If a model has no value, all have the same, or the other predictors determine a column.
    """
    names: list[str] = []
    encoded = np.empty((len(models), 0))
    for name, values in covariates.items():
        texts = [next((values[short] for short in short_names(model) if short in values), "") for model in models]
        if missing := [model for model, text in zip(models, texts, strict=True) if not text]:
            raise UsageError(f"--covariate {name}: no value for {', '.join(missing)}")
        if len(set(texts)) == 1:
            raise UsageError(
                f"--covariate {name}: it is {texts[0]} for all of these models, so it can't explain anything"
            )
        titles, columns = _encoded(name, texts)
        for title, column in zip(titles, columns.T, strict=True):
            before = np.column_stack([np.ones(len(models)), known, encoded])
            left = column - before @ np.linalg.lstsq(before, column, rcond=None)[0]
            if (left**2).sum() <= _DETERMINED * (column**2).sum():
                others = ", ".join([*known_names, *(one.removeprefix(PREFIX) for one in names)])
                raise UsageError(
                    f"--covariate {name}: {title.removeprefix(PREFIX)} is determined by the other predictors of these "
                    f"{len(models)} models ({others or 'the intercept'}), so its effect can't be separated from theirs"
                )
            names.append(title)
            encoded = np.column_stack([encoded, column])
    return names, encoded


def _encoded(name: str, texts: Sequence[str]) -> tuple[list[str], Array]:
    numbers = [finite(text) for text in texts]
    if all(number is not None for number in numbers):
        values = np.array(numbers, dtype=float)
        spread = values.std()
        if not spread > _DETERMINED * np.abs(values).max():
            raise UsageError(
                f"--covariate {name}: it is {texts[0]} for all of these models, so it can't explain anything"
            )
        return [f"{PREFIX}{name} (per sd)"], ((values - values.mean()) / spread)[:, None]
    if some := [text for text, number in zip(texts, numbers, strict=True) if number is not None]:
        other = next(text for text, number in zip(texts, numbers, strict=True) if number is None)
        raise UsageError(f"--covariate {name}: '{other}' is not a number, but {some[0]} is; use one kind of values")
    counts = Counter(texts)
    reference = min(counts, key=lambda text: (-counts[text], text))
    levels = [text for text in sorted(counts) if text != reference]
    titles = [f"{PREFIX}{name}: {text} (vs. {reference})" for text in levels]
    return titles, np.column_stack([[float(text == level) for text in texts] for level in levels])
