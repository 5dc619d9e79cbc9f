"""``labmates analyze``: the analyses, with options for their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from labmates.cli.common import SuggestingGroup
from labmates.cli.verbs import made, names_within, verb_within
from labmates.workflows.protocol.analysis import ANALYSES, Analysis, Params, Result
from labmates.workflows.protocol.command import Command, Lab
from labmates.workflows.protocol.verb import VERBS


class Analyses(SuggestingGroup):
    """A group of the analyses with a common prefix, and of experiments' verbs."""

    def __init__(self, prefix: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self._prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of analyses, verbs and subgroups."""
        names = [*names_within(f"analyze/{self._prefix}", VERBS), *names_within(self._prefix, ANALYSES)]
        return sorted({name.split("/")[0] for name in names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an analysis or verb, or a subgroup."""
        name = self._prefix + cmd_name
        ANALYSES.refuse_missing(name)
        if name in ANALYSES:
            return _command(cmd_name, ANALYSES.get(name))
        if (verb := verb_within(f"analyze/{name}")) is not None:
            return verb
        if any(other.startswith(f"{name}/") for other in ANALYSES.names()):
            prefix = f"{name}/"
            members = [ANALYSES.get(member) for member in ANALYSES.names() if member.startswith(prefix)]
            names = " and ".join(analysis.name.removeprefix(prefix) for analysis in members)
            return Analyses(
                prefix, name=cmd_name, help=f"{cmd_name.capitalize()} {names}.", epilog=f"Example: {members[0].example}"
            )
        return None


@click.group(cls=Analyses, epilog="Example: labmates analyze scores --study pilot")
def analyze() -> None:
    """Analyse the runs in a store."""


def _command(name: str, analysis: Analysis[Any]) -> click.Command:
    def run(lab: Lab, params: Params) -> Iterator[Result]:
        yield analysis.result(lab.runs, params)

    run.__doc__ = analysis.compute.__doc__
    command = Command(
        run,
        analysis.params,
        example=analysis.example,
        has_store=bool(analysis.choices),
        has_tables=True,
        has_figures=analysis.has_figures,
        choices=(*analysis.choices, "allow_mixed") if analysis.choices else (),
        objects=analysis.objects,
    )
    return made(name, command)


def _top(name: str) -> click.Command:
    """An analysis that is a top-level verb as well."""
    analysis = ANALYSES.get(name)
    return _command(name, replace(analysis, example=analysis.example.replace(" analyze ", " ")))


COMPARE = _top("compare")
