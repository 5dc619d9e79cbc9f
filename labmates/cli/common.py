"""Common options of commands, and groups that suggest names."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from labmates.errors import did_you_mean

if TYPE_CHECKING:
    from labmates.workflows.protocol.analysis import Choice

LONGEST_SUMMARY = 300
"""Maximum characters; by default, click cuts summaries to one line."""
F = TypeVar("F", bound=Callable[..., Any])


class SuggestingGroup(click.Group):
    """A group that lists whole summaries; the error for an unknown name suggests the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named command, with the remaining arguments."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            commands = self.list_commands(ctx)
            show = f" Write: {ctx.command_path} show {name}" if ctx.parent and "show" in commands else ""
            ctx.fail(
                f"No such command '{name}'."
                + (did_you_mean(name, commands) or show or f" Known: {', '.join(commands)}.")
            )
        resolved = super().resolve_command(ctx, args)
        if ctx.resilient_parsing and resolved[1] is not None:  # for completion in the shell
            from labmates.cli.complete import offer_names

            offer_names(resolved[1])
        return resolved

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands with uncut first sentences."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary(ctx, name)) for name in self.list_commands(ctx)])

    def summary(self, ctx: click.Context, name: str) -> str:
        """The first sentence of a command's help. Override it where making a command takes long."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=LONGEST_SUMMARY) if command is not None else ""


class SectionedCommand(click.Command):
    """A command with help in sections: options by title; "Options" has all others, at its place or at the end."""

    sections: MappingProxyType[str, Sequence[click.Parameter]] = MappingProxyType({})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in order, then the other options."""
        sectioned = [parameter for parameters in self.sections.values() for parameter in parameters]
        options = [each for each in self.get_params(ctx) if not isinstance(each, click.Argument)]
        others = [option for option in options if option not in sectioned]
        for title, parameters in (self.sections | {"Options": others}).items():
            records = [record for parameter in parameters if (record := parameter.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


def store_option(function: F) -> F:
    """Add ``--store``."""
    return click.option(
        "--store",
        metavar="STORE",
        help="Store of the runs: a URL or the path of an SQLite file. [default: LABMATES_STORE, else labmates.db]",
    )(function)


def json_option(which: str = "") -> Callable[[F], F]:
    """A decorator that adds ``--json``, as `as_json`; `which` describes the objects, as in "per run"."""
    objects = f"one JSON object {which}".strip()
    return click.option("--json", "as_json", is_flag=True, help=f"Print {objects} and nothing else.")


def verbose_option(function: F) -> F:
    """Add ``-v``."""

    def start(_ctx: click.Context, _param: click.Parameter, value: int) -> None:
        if value:
            import logging

            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            logger = logging.getLogger("labmates")
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG if value > 1 else logging.INFO)

    return click.option(
        "-v", "--verbose", count=True, callback=start, expose_value=False, help="Log to standard error; -vv logs more."
    )(function)


def refuse_misplaced(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse repeated options, values without their option and options for arguments, and say what to write.

    This is for `command` and for the subcommand in `args`. Raises `click.UsageError`; other unparsable arguments pass:
    the command's parsing reports them.
    """
    try:
        _, rest, given = command.make_parser(ctx).parse_args(args=list(args))
        below = command.resolve_command(ctx, rest) if isinstance(command, click.Group) and rest else None
    except click.NoSuchOption as error:
        for parameter in command.params:
            if isinstance(parameter, click.Argument) and f"--{parameter.name}" == error.option_name:
                told = f"{ctx.command_path} {parameter.make_metavar(ctx)}"
                raise click.UsageError(f"{error.option_name} is no option here; write: {told}", ctx) from None
        return
    except click.UsageError:
        return
    for parameter, times in Counter(given).items():
        single = isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
        if single and times > 1:
            others = "; to compare two: labmates compare study=FIRST study=SECOND" if parameter.name == "study" else ""
            raise click.UsageError(f"{parameter.opts[-1]} is given {times} times; it takes one value{others}", ctx)
    if below is not None and (verb := below[1]) is not None:
        refuse_misplaced(verb, click.Context(verb, ctx, below[0], **verb.context_settings), below[2])
    elif rest and not isinstance(command, click.Group):
        for parameter in command.params:
            if "[required]" in (getattr(parameter, "help", None) or "") and parameter not in given:
                told = f"{ctx.command_path} {parameter.opts[-1]} {rest[0]}"
                raise click.UsageError(f"'{rest[0]}' has no option; write: {told}", ctx)


_CHOICES: Final[Mapping[Choice, Callable[[Any], Any]]] = {
    "runs": click.argument("run_ids", nargs=-1, metavar="[RUN]..."),
    "study_argument": click.argument("study", required=False),
    "study": click.option("--study", metavar="NAME", help="Runs of this study."),
    "kind": click.option("--kind", metavar="KIND", help="Runs of this experiment."),
    "task": click.option("--task", metavar="TASK", help="Runs of this task."),
    "allow_mixed": click.option(
        "--allow-mixed", is_flag=True, help="Also if the runs were made with different prompts, rules or code."
    ),
}


def choosing(choices: Iterable[Choice]) -> Callable[[F], F]:
    """A decorator that adds arguments and options for the choice of runs, in this order."""

    def add(function: F) -> F:
        for choice in reversed(tuple(choices)):
            function = _CHOICES[choice](function)
        return function

    return add


run_choice = choosing(("runs", "study", "kind", "task"))
"""Adds the arguments RUN... and the options ``--study``, ``--kind`` and ``--task``."""
