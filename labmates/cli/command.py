"""The command that runs a condition, for messages to the user."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from labmates.cli.options import flag, flag_of_one, settable
from labmates.models.entries import Access
from labmates.models.options import ModelOptions
from labmates.models.settings import write_query
from labmates.studies.settings import RunSettings
from labmates.workflows.experiment import Condition

PRICE_FILE = "PRICES.json"


def command_of(
    condition: Condition, *, seed: int, replicates: int, settings: Mapping[str, Any], store: str | None
) -> str:
    """The command line that runs a condition, with all that differs from the defaults.

    Parameters
    ----------
    settings
        Settings of a run, as its record holds them.
    store
        The store that was asked for by name, or None.
    """
    words = ["labmates", "run", condition.kind]
    required = {name for name, field in type(condition).model_fields.items() if field.is_required()}
    values = condition.model_dump(mode="json")
    usual = type(condition).model_validate({name: values[name] for name in required}).model_dump(mode="json")
    words += options_for(
        {name: value for name, value in values.items() if name in required or value != usual.get(name)}
    )
    ours = RunSettings.model_validate(settings)
    shown = settable(RunSettings).keys() - {"models"}
    words += options_for({name: value for name, value in _unusual(ours, RunSettings()).items() if name in shown})
    entries = ours.models.entries
    words += options_for(_unusual(ours.models.model_copy(update={"entries": {}}), ModelOptions()))
    words = [_reached(word, entries) for word in words]
    words += ["--seed", str(seed)] if seed else []
    words += ["--replicates", str(replicates)] if replicates > 1 else []
    words += ["--store", store] if store else []
    return shlex.join(words)


def _reached(word: str, entries: Mapping[str, Access]) -> str:
    """A word of the command; a model comes with its endpoint."""
    for name, access in entries.items():
        if word == name or word.endswith(f"={name}"):
            mark = "&" if "?" in name else "?"
            return f"{word}{mark}{write_query(access.model_dump(mode='json', exclude_none=True))}"
    return word


def _unusual(model: BaseModel, usual: BaseModel) -> dict[str, Any]:
    defaults = usual.model_dump(mode="json")
    return {name: value for name, value in model.model_dump(mode="json").items() if value != defaults.get(name)}


def options_for(values: Mapping[str, Any]) -> Iterator[str]:
    """The words of a command line that give these values."""
    for name, value in values.items():
        if name == "prices":
            yield from (flag(name), _prices(value))
        elif value is True:
            yield flag(name)
        elif isinstance(value, dict):
            for key, entry in value.items():
                yield from (flag(name), f"{key}={entry}")
        elif isinstance(value, list):
            for entry in value:
                yield from (flag_of_one(name), str(entry))
        else:
            yield from (flag(name), str(value))


def _prices(prices: Mapping[str, Any]) -> str:
    """A price list as the command line takes it; prices by model have to be in a file."""
    if prices["models"]:
        return PRICE_FILE
    return f"input={prices['default']['input']},output={prices['default']['output']},tool_call={prices['tool_call']}"
