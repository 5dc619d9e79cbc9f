"""``labmates.toml`` in the working directory: the user's defaults of options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click
from pydantic import BaseModel

from labmates.errors import UsageError, did_you_mean
from labmates.workflows.experiment import EXPERIMENTS

FILE: Final = Path("labmates.toml")
_TABLES: Final = ("store", "models", "execution", "run")


def default_store() -> str | None:
    """The store that the file names, if it names one.

    Raises
    ------
    UsageError
        If the file can't be read.
    """
    store = _content().get("store")
    if not isinstance(store, str | None):
        raise UsageError(f"{FILE}: store must be a URL in quotes")
    return store


def set_defaults(options: Iterable[click.Parameter], table: str, model: type[BaseModel]) -> None:
    """Use the values of one table, such as ``run.science``, as defaults of options.

    Raises
    ------
    UsageError
        If the file can't be read, or the table has a key that is no field of the model.
    """
    values = _table(table)
    for name in values:
        if name not in model.model_fields:
            raise UsageError(f"{FILE}: [{table}] has no '{name}'.{did_you_mean(name, model.model_fields)}")
    for option in options:
        if option.name in values:
            value = values[option.name]
            if isinstance(value, dict):
                value = [f"{key}={entry}" for key, entry in value.items()]
            assert isinstance(option, click.Option)
            option.help = f"{option.help} [{FILE}: {values[option.name]}]"
            option.default = [value] if option.multiple and not isinstance(value, list) else value


def _table(path: str) -> Mapping[str, Any]:
    table: Any = _content()
    for part in path.split("."):
        table = table.get(part, {})
        if not isinstance(table, dict):
            raise UsageError(f"{FILE}: {part} must be a table: [{path}]")
    return {str(name).replace("-", "_"): value for name, value in table.items()}


def _content() -> dict[str, Any]:
    """The file as it is; without one, nothing."""
    try:
        content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{FILE} can't be read: {error}") from error
    _check_names("", content, _TABLES)
    _check_names("run.", content["run"] if isinstance(content.get("run"), dict) else {}, EXPERIMENTS.names())
    return content


def _check_names(prefix: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    for name in names:
        if name not in allowed:
            known = ", ".join(prefix + other for other in allowed)
            raise UsageError(f"{FILE}: unknown '{prefix}{name}'.{did_you_mean(name, allowed)} Known: {known}.")
