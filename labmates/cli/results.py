"""Results of analyses and verbs: the parameters that they come from, how they are printed, and the files they go to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from labmates.cli.console import clean, complain, out, print_json
from labmates.cli.figures import draw
from labmates.cli.options import flags_of, given
from labmates.cli.tables import print_tables, write_files
from labmates.errors import UsageError, explain
from labmates.workflows.analysis import Missing, Result, Runs, TooFewRunsError

if TYPE_CHECKING:
    from labmates.stats.tables import Table

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], values: dict[str, Any]) -> M:
    """The parameters that a command line gives.

    Raises
    ------
    UsageError
        If a value is missing, unknown or out of bounds.
    """
    try:
        return model.model_validate(given(values, model))
    except ValidationError as error:
        raise UsageError(explain(error, flags_of(model))) from error


def chosen_runs(values: Mapping[str, Any], **more: Any) -> Runs:
    """The runs that the options of `labmates.cli.common.choosing` and ``--store`` choose."""
    named = {choice: values[choice] for choice in ("study", "kind", "task") if choice in values}
    return Runs(values.get("store"), values.get("run_ids", ()), **named, **more)


def present(results: Iterable[Result], values: Mapping[str, Any]) -> int:
    """Print results, each when it comes, and write their files.

    Parameters
    ----------
    values
        The options ``--json``, ``--out``, ``--store`` and those of figures, as far as the command has them.

    Returns
    -------
    int
        The exit code: 1 if a result can't be used.
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
    """The missing runs, and the commands that make them: one for each stretch of seeds in a row."""
    from labmates.cli.command import command_of

    for gap in missing:
        yield gap.text
        if gap.condition is None:
            continue
        yield "  make it with:" if len(gap.seeds) == 1 else "  make them with:"
        for start in (seed for seed in gap.seeds if seed - 1 not in gap.seeds):
            replicates = next(n for n in range(1, len(gap.seeds) + 1) if start + n not in gap.seeds)
            command = command_of(gap.condition, seed=start, replicates=replicates, settings=gap.settings, store=store)
            yield f"    {command}"
