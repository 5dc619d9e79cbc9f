"""``labmates analyze``: the analyses, with options for their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from labmates.cli.common import SuggestingGroup
from labmates.cli.options import flag
from labmates.cli.verbs import made, verb_command
from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import ANALYSES, Analysis, Export, Params, Result
from labmates.workflows.protocol.command import Command, Lab
from labmates.workflows.protocol.verb import VERBS


class Analyses(SuggestingGroup):
    """A group of the analyses with a common prefix, and of experiments' verbs."""

    def __init__(self, prefix: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self._prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of analyses, verbs and subgroups."""
        verbs = self._below("analyze/" + self._prefix, VERBS.names())
        return sorted({name.split("/")[0] for name in (*verbs, *self._below(self._prefix, ANALYSES.names()))})

    @staticmethod
    def _below(prefix: str, names: list[str]) -> Iterator[str]:
        return (name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an analysis or verb, or a subgroup."""
        name = self._prefix + cmd_name
        ANALYSES.refuse_missing(name)
        if name in ANALYSES:
            return _command(cmd_name, ANALYSES.get(name))
        if f"analyze/{name}" in VERBS:
            return verb_command(cmd_name, VERBS.get(f"analyze/{name}"))
        if any(other.startswith(f"{name}/") for other in ANALYSES.names()):
            prefix = f"{name}/"
            members = [ANALYSES.get(member) for member in ANALYSES.names() if member.startswith(prefix)]
            names = " and ".join(analysis.name.removeprefix(prefix) for analysis in members)
            return Analyses(prefix, name=cmd_name, help=f"Analyses: {names}.", epilog=f"Example: {members[0].example}")
        return None


@click.group(cls=Analyses, epilog="Example: labmates analyze agreement --study pilot")
def analyze() -> None:
    """Analyse the runs in a store."""


def _command(name: str, analysis: Analysis[Any]) -> click.Command:
    def run(lab: Lab, params: Params) -> Iterator[Result]:
        exports = _exports(analysis, click.get_current_context().params)
        result = analysis.result(lab.runs, params)
        yield result
        for export, path in exports.items():
            for written in result.exports[export](path):
                lab.notify(f"Written to {written}")

    run.__doc__ = analysis.compute.__doc__
    command = Command(
        run,
        analysis.params,
        example=analysis.example,
        has_store=bool(analysis.choices),
        has_tables=True,
        has_figures=analysis.has_figures,
        choices=analysis.choices,
        objects=analysis.objects,
    )
    return made(name, command, more=list(map(_export_option, analysis.exports)))


def _export_option(export: Export) -> click.Option:
    file = click.Path(dir_okay=False, path_type=Path)
    return click.Option([flag(export.name)], type=file, metavar="FILE", help=export.description)


def _exports(analysis: Analysis[Any], values: Mapping[str, Any]) -> dict[str, Path]:
    """The requested files by export.

    Raises `UsageError` if a file has the wrong extension, or its folder can't be created.
    """
    asked = {export: values[export.name] for export in analysis.exports if values[export.name] is not None}
    for export, path in asked.items():
        if path.suffix.lower() not in export.endings:
            raise UsageError(f"{flag(export.name)} ends in {' or '.join(export.endings)}, not '{path.name}'")
        if export.check is not None:
            export.check(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"can't write to '{path}': {error.strerror}") from error
    return {export.name: path for export, path in asked.items()}


def _top(name: str) -> click.Command:
    """An analysis that is a top-level verb as well."""
    analysis = ANALYSES.get(name)
    return _command(name, replace(analysis, example=analysis.example.replace(" analyze ", " ")))


COMPARE = _top("compare")
