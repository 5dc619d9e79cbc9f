"""``labmates analyze``: the analyses, each with the options of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
from pydantic import ValidationError

from labmates.cli.analyze.reasons import reasons
from labmates.cli.common import RegistryGroup, json_option, store_option
from labmates.cli.console import clean, complain, err, out, print_json
from labmates.cli.figures import draw
from labmates.cli.options import flags_of, given, options_of
from labmates.cli.runs import choosing
from labmates.cli.tables import out_option, print_tables, write_files
from labmates.errors import UsageError, explain
from labmates.workflows.analysis import (
    ANALYSES,
    Analysis,
    Export,
    Missing,
    Params,
    Result,
    Runs,
    TooFewRunsError,
)

_FORMATS = ("png", "svg", "pdf")


class Analyses(RegistryGroup):
    """A group of analyses: all whose names begin with a prefix."""

    def __init__(self, prefix: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self._prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the analyses and of the groups among them."""
        names = (name.removeprefix(self._prefix) for name in ANALYSES.names() if name.startswith(self._prefix))
        return sorted({*super().list_commands(ctx), *(name.split("/")[0] for name in names)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an analysis, or the group of those with a common prefix."""
        name = self._prefix + cmd_name
        if (command := super().get_command(ctx, cmd_name)) is not None:
            return command
        if name in ANALYSES:
            return _command(cmd_name, ANALYSES.get(name))
        if any(other.startswith(f"{name}/") for other in ANALYSES.names()):
            return _subgroup(cmd_name, f"{name}/")
        return None


def _subgroup(name: str, prefix: str) -> Analyses:
    members = [ANALYSES.get(member) for member in ANALYSES.names() if member.startswith(prefix)]
    names = " and ".join(analysis.name.removeprefix(prefix) for analysis in members)
    return Analyses(prefix, name=name, help=f"Analyses: {names}.", epilog=f"Example: {members[0].example}")


@click.group(cls=Analyses, epilog="Example: labmates analyze agreement --study pilot")
def analyze() -> None:
    """Compute what the runs of a store mean."""


analyze.add_command(reasons)  # It asks a model and adds to runs, which an analysis never does.


def _command(name: str, analysis: Analysis[Any]) -> click.Command:
    """The command of an analysis."""

    def callback(as_json: bool, files: tuple[Path, ...], **values: Any) -> int:
        params = _params(analysis, values)
        plots = _plots(values)
        exports = _exports(analysis, values)
        named = {choice: values[choice] for choice in ("study", "kind", "task") if choice in values}
        runs = Runs(values.get("store"), values.get("run_ids", ()), **named, watch=_watch)
        try:
            result = analysis.compute(runs, params)
            _show(result, as_json=as_json, store=values.get("store"))
            write_files(result.tables, files)
            _draw(result, plots)
            for export, path in exports.items():
                for written in result.exports[export](path):
                    err().print(f"Written to {written}", markup=False)
        except TooFewRunsError as error:
            if not error.missing:
                raise
            raise UsageError("\n".join([str(error), *_missing(error.missing, values.get("store"))])) from error
        finally:
            runs.close()
        if result.fault:
            complain(result.fault)
        return 1 if result.fault else 0

    decorators: list[Callable[[Any], Any]] = [choosing(analysis.choices)]
    decorators += [_plots_options] if analysis.has_figures else []
    decorators += [json_option(analysis.objects), out_option]
    decorators += [store_option] if analysis.choices else []
    for decorate in reversed(decorators):
        callback = decorate(callback)
    example = f"Example: {analysis.example}" if analysis.example else None
    command = click.command(name, help=dedent(analysis.compute.__doc__ or ""), epilog=example)(callback)
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    options = [parameter for parameter in command.params if not isinstance(parameter, click.Argument)]
    own = [*options_of(analysis.params), *map(_export_option, analysis.exports)]
    command.params = [*arguments, *own, *options]
    return command


def _watch(step: str) -> None:
    err().print(step, markup=False)


def _params(analysis: Analysis[Any], values: Mapping[str, Any]) -> Params:
    try:
        params: Params = analysis.params.model_validate(given(dict(values), analysis.params))
    except ValidationError as error:
        raise UsageError(explain(error, flags_of(analysis.params))) from error
    return params


def _show(result: Result, *, as_json: bool, store: str | None) -> None:
    if result.document:
        click.echo(result.document, nl=False)
        return
    if as_json:
        for one in result.json_objects():
            print_json(dict(one))
        return
    for sentence in result.verdict:
        out().print(clean(sentence), markup=False, highlight=False)
    print_tables([*result.tables, *result.details])
    for heading, sentences in result.remarks.items():
        _print_list(heading, sentences)
    _print_list("Warnings", result.warnings, style="yellow")
    if result.missing:
        out().print("\nMissing", style="bold")
    for line in _missing(result.missing, store):
        out().print(clean(line), markup=False)


def _print_list(heading: str, sentences: Sequence[str], style: str | None = None) -> None:
    if sentences:
        out().print(f"\n{clean(heading)}", style="bold", markup=False)
    for sentence in sentences:
        out().print(f"- {clean(sentence)}", style=style, markup=False, highlight=False)


def _missing(missing: Sequence[Missing], store: str | None) -> Iterator[str]:
    """What is missing, and the commands that make it: one for each stretch of seeds in a row."""
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


def _plots_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--plot``, ``--plots`` and ``--format``."""
    file = click.Path(dir_okay=False, path_type=Path)
    folder = click.Path(file_okay=False, path_type=Path)
    for option in (
        click.option("--format", type=click.Choice(_FORMATS), default="png", show_default=True, help="Of figures."),
        click.option("--plots", type=folder, metavar="DIR", help="Draw all figures into this folder."),
        click.option("--plot", type=file, metavar="FILE", help="Draw the first figure to a file: png, svg or pdf."),
    ):
        function = option(function)
    return function


def _plots(values: Mapping[str, Any]) -> Callable[[int, str], list[Path]]:
    """A function from the place and the name of a figure to the files that it is drawn to; checked before computing."""
    from labmates.stats.figures import check_figure

    plot, folder, form = values.get("plot"), values.get("plots"), values.get("format")
    if plot is not None:
        check_figure(plot)
    if folder is not None:
        check_figure(folder / f"figure.{form}")

    def files(place: int, name: str) -> list[Path]:
        first = [plot] if plot is not None and place == 0 else []
        return first + ([folder / f"{name}.{form}"] if folder is not None else [])

    return files


def _draw(result: Result, plots: Callable[[int, str], list[Path]]) -> None:
    for place, drawing in enumerate(result.figures):
        paths = plots(place, drawing.name)
        if paths and (figure := drawing.draw()) is not None:
            for path in paths:
                draw(figure, path)


def _export_option(export: Export) -> click.Option:
    flag = f"--{export.name.replace('_', '-')}"
    file = click.Path(dir_okay=False, path_type=Path)
    return click.Option([flag], type=file, metavar="FILE", help=export.description)


def _exports(analysis: Analysis[Any], values: Mapping[str, Any]) -> dict[str, Path]:
    """The files that were asked for, by the names of their exports.

    Raises
    ------
    UsageError
        If a file has another ending, or its folder can't be made.
    """
    asked = {export: values[export.name] for export in analysis.exports if values[export.name] is not None}
    for export, path in asked.items():
        if path.suffix.lower() not in export.endings:
            flag = f"--{export.name.replace('_', '-')}"
            raise UsageError(f"{flag} ends in {' or '.join(export.endings)}, not '{path.name}'")
        if export.check is not None:
            export.check(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"can't write to '{path}': {error.strerror}") from error
    return {export.name: path for export, path in asked.items()}
