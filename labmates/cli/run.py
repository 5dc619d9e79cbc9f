"""``labmates run KIND``: one condition, one or more runs."""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import Any

import click

from labmates.cli.common import (
    LONGEST_SUMMARY,
    SectionedCommand,
    SuggestingGroup,
    json_option,
    store_option,
    verbose_option,
)
from labmates.cli.lab import CommandLab, condition_sections
from labmates.cli.options import condition_given
from labmates.workflows.protocol.experiment import EXPERIMENTS


class Kinds(SuggestingGroup):
    """The kinds of experiments, with the options of their conditions."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all kinds."""
        return EXPERIMENTS.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of one kind."""
        EXPERIMENTS.refuse_missing(cmd_name)
        return _command(cmd_name) if cmd_name in EXPERIMENTS else None

    def summary(self, ctx: click.Context, name: str) -> str:
        """The first sentence about an experiment's conditions, without making its hundred options."""
        described = click.Command(name, help=EXPERIMENTS.get(name).condition.__doc__)
        return described.get_short_help_str(limit=LONGEST_SUMMARY)


@click.group(cls=Kinds, epilog="Example: labmates run game --game o-ring --model scripted:random")
def run() -> None:
    """Run one condition of an experiment, one or more times."""


def _command(kind: str) -> click.Command:
    condition = EXPERIMENTS.get(kind).condition

    @store_option
    @verbose_option
    @click.option("--replicates", type=click.IntRange(min=1), default=1, show_default=True, help="Number of runs.")
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of the first run; each further run adds one.",
    )
    @click.option("--resume", metavar="ID", help="Resume this unfinished run with its own condition.")
    @json_option("per run")
    def callback(replicates: int, seed: int, resume: str | None, **values: Any) -> int:
        with CommandLab(values, condition_given(values, condition), again=f"labmates run {kind}") as lab:
            if resume is None:
                lab.replicates(lab.condition(kind, {}), replicates, seed=seed)
            else:
                lab.resume(resume, kind)
        return lab.code

    command = click.command(
        name=kind,
        cls=SectionedCommand,
        help=condition.__doc__,
        epilog=f"Example: {example}" if (example := EXPERIMENTS.get(kind).example) else None,
    )(callback)
    sections = condition_sections(kind)
    command.sections = MappingProxyType({"Condition": [], "Options": [], **sections})
    command.params = [*chain(*sections.values()), *command.params]
    return command
