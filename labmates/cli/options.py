"""Command-line options derived from the pydantic models that declare the parameters."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.types import PathType
from pydantic_core import PydanticUndefined

from labmates.errors import UsageError
from labmates.models.entries import FILE_NAME, FILE_VARIABLE
from labmates.models.options import ModelOptions


def flag(name: str) -> str:
    """The option of a field: ``team_size`` gives ``--team-size``."""
    return "--" + name.split(".")[0].replace("_", "-")


def flag_of_one(name: str) -> str:
    """The option for one entry of a list or table: ``judges`` gives ``--judge``."""
    return flag(name).removesuffix("s")


def flags_of(model: type[BaseModel]) -> Callable[[str], str]:
    """A function from a field of `model` to its option, for error messages."""

    def named(name: str) -> str:
        field = model.model_fields.get(name.split(".")[0])
        if field is None:
            return flag(name)
        shown = [option for option in _more_flags(field) if option.startswith("--")]  # first in the help
        is_repeated = _is_many(field) and field.json_schema_extra != {"words": True}
        return shown[0] if shown else flag_of_one(name) if is_repeated else flag(name)

    return named


def options_of(model: type[BaseModel], *, leave_out: Iterable[str] = ()) -> list[click.Parameter]:
    """One option or argument for each settable field of a model, which validates the values instead of click.

    ``json_schema_extra`` ``{"argument": True}`` makes a field an argument; ``{"folder": True}`` marks the path of a
    folder that may be new.
    """
    options = [_parameter(name, field) for name, field in settable(model).items() if name not in set(leave_out)]
    return [*options, models_file_option()] if model is ModelOptions else options


def with_arguments_first(command: click.Command, options: Sequence[click.Parameter]) -> click.Command:
    """A command with further options before its own; arguments come first."""
    parameters = [*options, *command.params]
    command.params = sorted(parameters, key=lambda parameter: not isinstance(parameter, click.Argument))
    return command


def models_file_option() -> click.Option:
    """``--models-file``, which also applies to worker processes."""

    def choose(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value is not None:
            os.environ[FILE_VARIABLE] = value

    return click.Option(
        ["--models-file"],
        metavar="FILE",
        expose_value=False,
        is_eager=True,
        callback=choose,
        help=f"Named models. [default: {FILE_VARIABLE}, else {FILE_NAME} here]",
    )


def settable(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model, except recorded ones."""
    recorded = {"recorded": True}
    return {name: field for name, field in model.model_fields.items() if field.json_schema_extra != recorded}


def given(values: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The given options, as values for `model`. Raises `UsageError` if a NAME=VALUE option lacks ``=``."""
    chosen = {}
    for name, field in model.model_fields.items():
        value = values.get(name)
        if value is None or value == ():
            continue
        chosen[name] = _pairs(name, value) if _is_dict(field) else value
    return chosen


def condition_given(values: dict[str, Any], condition: type[BaseModel]) -> dict[str, Any]:
    """The given parameters of a condition, with price lists read from files.

    Raises `UsageError` as `given` does, and if a price list can't be read.
    """
    parameters = given(values, condition)
    if isinstance(parameters.get("prices"), str):
        from labmates.budgets.prices import read_prices

        parameters["prices"] = read_prices(parameters["prices"])
    return parameters


def _parameter(name: str, field: FieldInfo) -> click.Parameter:
    if field.json_schema_extra == {"argument": True}:
        is_many = _is_many(field)
        shown = f"{name.removesuffix('s').upper()}..." if is_many else name.upper()
        metavar = shown if field.is_required() else f"[{shown}]"
        nargs = -1 if is_many else 1
        return click.Argument([name], required=field.is_required(), nargs=nargs, metavar=metavar)
    help_ = field.description or ""
    if not field.is_required() and (default := _default(field)) is not None:
        help_ += f" [default: {default}]"
    kind = _kind(field)
    if field.json_schema_extra == {"folder": True}:
        return click.Option([flag(name)], help=help_, type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
    if kind is bool:
        negated = f"/--no-{flag(name)[2:]}" if field.default is True else ""
        return click.Option([flag(name) + negated], is_flag=True, default=None, help=help_)
    if _is_many(field):
        names = [name, *_more_flags(field), *dict.fromkeys((flag_of_one(name), flag(name)))]
        if _is_dict(field):
            return click.Option(names, multiple=True, metavar="NAME=VALUE", help=help_)
        return click.Option(names, multiple=True, help=help_, **_values(get_args(kind)[0]))
    return click.Option(
        [name, *_more_flags(field), flag(name)], help=f"{help_}{_bounds(field)}", **_values(kind, field.metadata)
    )


def _values(kind: Any, metadata: Sequence[object] = ()) -> dict[str, Any]:
    """The attributes of a click option for its values: choices, a file or a folder."""
    if get_origin(kind) is Literal:
        return {"type": click.Choice(list(get_args(kind)))}
    if Path in (kind, *get_args(kind)):
        marks = [mark for mark in (*metadata, *getattr(kind, "__metadata__", ())) if isinstance(mark, PathType)]
        if any(mark.path_type == "dir" for mark in marks):
            return {"type": click.Path(exists=True, file_okay=False, path_type=Path), "metavar": "DIR"}
        return {"type": click.Path(exists=bool(marks), dir_okay=False, path_type=Path), "metavar": "FILE"}
    return {"metavar": _metavar(kind)}


def _more_flags(field: FieldInfo) -> list[str]:
    extra = field.json_schema_extra
    more = extra.get("flags") if isinstance(extra, dict) else None
    return list(map(str, more)) if isinstance(more, list) else []


def _kind(field: FieldInfo) -> Any:
    kind = field.annotation
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    return kind


def _is_dict(field: FieldInfo) -> bool:
    return get_origin(_kind(field)) is dict


def _is_many(field: FieldInfo) -> bool:
    return _is_dict(field) or get_origin(_kind(field)) is tuple


def _metavar(kind: Any) -> str:
    if kind is int:
        return "N"
    return "NUMBER" if kind is float else "TEXT"


def _default(field: FieldInfo) -> object:
    if isinstance(field.default, bool) or field.default in (PydanticUndefined, (), {}):
        return None
    return field.default


def _bounds(field: FieldInfo) -> str:
    limits = {}
    for item in field.metadata:
        for name in ("ge", "gt", "le", "lt"):
            if hasattr(item, name):
                limits[name] = getattr(item, name)
    if "ge" in limits and "le" in limits:
        return f" [{limits['ge']} to {limits['le']}]"
    if "gt" in limits:
        most = f", at most {limits['le']}" if "le" in limits else ""
        return f" [above {limits['gt']}{most}]"
    return ""


def _pairs(name: str, values: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key or not rest:
            raise UsageError(f"{flag_of_one(name)} takes NAME=VALUE, not '{value}'")
        if key in pairs:
            raise UsageError(f"{flag_of_one(name)}: {key} is repeated")
        pairs[key] = rest
    return pairs
