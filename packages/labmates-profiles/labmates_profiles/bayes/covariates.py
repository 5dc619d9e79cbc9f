"""User-supplied predictors of models: table columns encoded as regression columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from labmates.errors import UsageError
from labmates.util.csv_rows import finite, read_rows
from labmates.util.display_names import short_names
from labmates_profiles.arrays import Array

PREFIX: Final = "covariate:"
"""Prefix of the names of these predictors."""
Covariates = Mapping[str, Mapping[str, str]]
"""Values as text, by covariate and model."""
_NAMES: Final = ("name", "model", "models")
_DETERMINED: Final = 1e-9


def read_covariates(wanted: Sequence[str], files: Sequence[Path]) -> dict[str, dict[str, str]]:
    """Columns of tables with a model in each row: a roster, simulations, profiles or lab runs.

    Raises
    ------
    UsageError
        If a column is missing, or a model has several values in it.
    """
    tables = [read_rows(path) for path in files] if wanted else []
    covariates: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(wanted):
        values: dict[str, set[str]] = {}
        sources = [rows for rows in tables if name in rows[0] and name not in _NAMES]
        if not sources:
            present = dict.fromkeys(column for rows in tables for column in rows[0] if column not in _NAMES)
            known = f"the columns are: {', '.join(present)}" if present else "give a table of models with --roster FILE"
            raise UsageError(f"--covariate: no file has a column '{name}'; {known}")
        for rows in sources:
            key = next((column for column in _NAMES if column in rows[0]), None)
            if key is None:
                raise UsageError(f"--covariate: the table with the column '{name}' has no column model or name")
            for row in rows:
                if row[name]:
                    values.setdefault(row[key].lower(), set()).add(row[name])
        for model, distinct in values.items():
            if len(distinct) > 1:
                raise UsageError(
                    f"--covariate {name}: {model} has several values ({', '.join(sorted(distinct)[:4])}); a covariate "
                    "is the same in all rows of a model"
                )
        covariates[name] = {model: next(iter(distinct)) for model, distinct in values.items()}
    return covariates


def covariate_columns(
    covariates: Covariates, models: Sequence[str], known: Array, known_names: Sequence[str]
) -> tuple[list[str], Array]:
    """Names and values of the columns of covariates, shape ``(models, columns)``.

    A numeric covariate is standardised over the models. Any other has an indicator column for each value except the
    most frequent one, the reference.

    Parameters
    ----------
    known, known_names
        The other predictors of the models, shape ``(models, k)``.

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
            raise _constant(name, texts[0])
        titles, columns = _encoded(name, texts)
        for title, column in zip(titles, columns.T, strict=True):
            before = np.column_stack([np.ones(len(models)), known, encoded])
            left = column - before @ np.linalg.lstsq(before, column, rcond=None)[0]
            if (left**2).sum() <= _DETERMINED * (column**2).sum():
                others = ", ".join([*known_names, *(column.removeprefix(PREFIX) for column in names)])
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
            raise _constant(name, texts[0])
        return [f"{PREFIX}{name} (per sd)"], ((values - values.mean()) / spread)[:, None]
    if numeric := [text for text, number in zip(texts, numbers, strict=True) if number is not None]:
        other = next(text for text, number in zip(texts, numbers, strict=True) if number is None)
        raise UsageError(f"--covariate {name}: '{other}' is not a number, but {numeric[0]} is; use one kind of values")
    counts = Counter(texts)
    reference = min(counts, key=lambda text: (-counts[text], text))
    levels = [text for text in sorted(counts) if text != reference]
    titles = [f"{PREFIX}{name}: {text} (vs. {reference})" for text in levels]
    return titles, np.column_stack([[float(text == level) for text in texts] for level in levels])


def _constant(name: str, value: str) -> UsageError:
    return UsageError(f"--covariate {name}: it is {value} for all of these models, so it can't explain anything")
