"""Results of analyses and verbs: their parameters, printed form and files."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from labmates.cli.console import clean, complain, out, print_json
from labmates.cli.figures import draw
from labmates.cli.options import flag, flag_of_one, flags_of, given, settable
from labmates.cli.tables import print_tables, write_files
from labmates.errors import UsageError, explain
from labmates.models.entries import Access
from labmates.models.options import ModelOptions
from labmates.models.settings import write_query
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.analysis import Missing, Result, Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import Condition

if TYPE_CHECKING:
    from labmates.stats.tables import Table

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], values: dict[str, Any]) -> M:
    """The parameters from a command line. Raises `UsageError` if a value is missing, unknown or out of bounds."""
    try:
        return model.model_validate(given(values, model))
    except ValidationError as error:
        raise UsageError(explain(error, flags_of(model))) from error


def chosen_runs(values: Mapping[str, Any], **more: Any) -> Runs:
    """The runs chosen by the options of `labmates.cli.common.choosing` and ``--store``."""
    named = {choice: values[choice] for choice in ("study", "kind", "task") if choice in values}
    return Runs(values.get("store"), values.get("run_ids", ()), **named, **more)


def present(results: Iterable[Result], values: Mapping[str, Any]) -> int:
    """Print results as they come, write their files, and return the exit code: 1 if a result is unusable.

    `values` are the command's options, among them ``--json``, ``--out``, ``--store`` and those of figures.
    """
    tables: list[Table] = []
    figures = code = 0
    try:
        for result in results:
            _show(result, as_json=values.get("as_json", False), store=values.get("store"))
            tables += result.tables
            for drawing in result.figures:
                draw(drawing, values, first=not figures)
                figures += 1
            if result.fault:
                complain(result.fault)
                code = 1
    except TooFewRunsError as error:
        if not error.missing:
            raise
        raise UsageError("\n".join([str(error), *_missing(error.missing, values.get("store"))])) from error
    write_files(tables, values.get("files", ()))
    return code


def _show(result: Result, *, as_json: bool, store: str | None) -> None:
    if result.document:
        click.echo(result.document, nl=False)
        return
    if as_json:
        for data in result.json_objects():
            print_json(dict(data))
        return
    for sentence in result.verdict:
        out().print(clean(sentence), highlight=False)
    print_tables([*result.tables, *result.details])
    for heading, sentences in result.remarks.items():
        _print_list(heading, sentences)
    _print_list("Warnings", result.warnings, style="yellow")
    if result.missing:
        out().print("\nMissing", style="bold")
    for line in _missing(result.missing, store):
        out().print(clean(line))


def _print_list(heading: str, sentences: Sequence[str], style: str | None = None) -> None:
    if sentences:
        out().print(f"\n{clean(heading)}", style="bold")
    for sentence in sentences:
        out().print(f"- {clean(sentence)}", style=style, highlight=False)


def _missing(missing: Sequence[Missing], store: str | None) -> Iterator[str]:
    """The missing runs, and the commands to make them, one per range of consecutive seeds."""
    for gap in missing:
        yield gap.text
        if gap.condition is None:
            continue
        yield "  make it with:" if len(gap.seeds) == 1 else "  make them with:"
        for start in (seed for seed in gap.seeds if seed - 1 not in gap.seeds):
            replicates = next(n for n in range(1, len(gap.seeds) + 1) if start + n not in gap.seeds)
            command = command_of(gap.condition, seed=start, replicates=replicates, settings=gap.settings, store=store)
            yield f"    {command}"


PRICE_FILE = "PRICES.json"


def command_of(
    condition: Condition, *, seed: int, replicates: int, settings: Mapping[str, Any], store: str | None
) -> str:
    """The command line of a condition, with all values that differ from the defaults; `settings` are a run's record."""
    words = ["labmates", "run", condition.kind]
    required = {name for name, field in type(condition).model_fields.items() if field.is_required()}
    values = condition.model_dump(mode="json")
    # Others follow from the material, as the size of teams from the organisation.
    material = required | (condition.material & values.keys())
    plain, usual = (
        type(condition).model_validate({name: values[name] for name in given}).model_dump(mode="json")
        for given in (required, material)
    )
    differs = {name for name in values if values[name] != (plain if name in material else usual).get(name)}
    words += options_for({name: value for name, value in values.items() if name in required | differs})
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
    """A word of the command; a model gets its connection."""
    for name, access in entries.items():
        if word == name or word.endswith(f"={name}"):
            mark = "&" if "?" in name else "?"
            return f"{word}{mark}{write_query(access.model_dump(mode='json', exclude_none=True))}"
    return word


def _unusual(model: BaseModel, usual: BaseModel) -> dict[str, Any]:
    defaults = usual.model_dump(mode="json")
    return {name: value for name, value in model.model_dump(mode="json").items() if value != defaults.get(name)}


def options_for(values: Mapping[str, Any]) -> Iterator[str]:
    """The options of a command line for these values."""
    for name, value in values.items():
        if name == "prices" and not isinstance(value, str):  # a verb's own option is the file
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
    if prices["models"]:
        return PRICE_FILE
    return f"input={prices['default']['input']},output={prices['default']['output']},tool_call={prices['tool_call']}"
