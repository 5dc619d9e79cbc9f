"""Results of analyses and verbs: their parameters, printed form and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from pydantic import BaseModel

from labmates.cli.console import complain, notify, print_json, say
from labmates.cli.options import flags_of, given
from labmates.cli.tables import draw, print_tables, write_files
from labmates.errors import explaining
from labmates.util.display_names import in_words
from labmates.workflows.protocol.analysis import Result, Runs

if TYPE_CHECKING:
    from labmates.stats.figures import Drawing
    from labmates.stats.tables import Table

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], values: dict[str, Any]) -> M:
    """The parameters from a command line. Raises `UsageError` if a value is missing, unknown or out of bounds."""
    with explaining(flags_of(model)):
        return model.model_validate(given(values, model))


def chosen_runs(values: Mapping[str, Any], **more: Any) -> Runs:
    """The runs chosen by the options of `labmates.cli.common.choosing` and ``--store``."""
    named = {choice: values[choice] for choice in ("study", "kind", "task", "allow_mixed") if choice in values}
    return Runs(values.get("store"), values.get("run_ids", ()), **named, **more)


def present(results: Iterable[Result], values: Mapping[str, Any]) -> int:
    """Print results as they come, write their files, and return the exit code: 1 if a result is unusable.

    `values` are the command's options, among them ``--json``, ``--out``, ``--store`` and those of figures.
    """
    tables: list[Table] = []
    figures: list[Drawing] = []
    code = 0
    unread: BrokenPipeError | None = None
    for place, result in enumerate(results):
        try:
            _show(result, as_json=values.get("as_json", False), apart=place > 0)
        except BrokenPipeError as error:  # as of "| head": the files are wanted all the same
            unread = error
        tables += result.tables
        for drawing in result.figures:
            draw(drawing, values, first=not figures)
            figures.append(drawing)
        if result.fault:
            complain(result.fault)
            code = 1
    if values.get("plot") and not values.get("plots") and len(figures) > 1:
        others = in_words([drawing.name for drawing in figures[1:]])
        notify(f"Not drawn: {others}; --plots FOLDER draws all {len(figures)} figures.")
    write_files(tables, values.get("files", ()))
    if unread:
        raise unread
    return code


def _show(result: Result, *, as_json: bool, apart: bool) -> None:
    if result.document:
        click.echo(result.document, nl=False)
        return
    if as_json:
        for data in result.json_objects():
            print_json(dict(data))
        return
    for sentence in result.verdict:
        say(sentence)
    print_tables([*result.tables, *result.details], apart=apart or bool(result.verdict))
    for heading, sentences in result.remarks.items():
        _print_list(heading, sentences)
    _print_list("Warnings", result.warnings, style="yellow")


def _print_list(heading: str, sentences: Sequence[str], style: str | None = None) -> None:
    if sentences:
        say(f"\n{heading}", style="bold")
    for sentence in sentences:
        say(f"- {sentence}", style=style)
