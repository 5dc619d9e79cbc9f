"""Commands of the verbs of experiments and other packages (`labmates.workflows.protocol.verb`)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Set
from inspect import getdoc
from itertools import chain
from types import MappingProxyType
from typing import Any

import click

from labmates.cli.common import SectionedCommand, SuggestingGroup, choosing, json_option, store_option, verbose_option
from labmates.cli.lab import CommandLab, condition_sections
from labmates.cli.options import condition_given, flag, flag_of_one, options_of, with_arguments_first
from labmates.cli.results import parsed, present
from labmates.cli.tables import figure_options, out_option
from labmates.models.options import ModelOptions
from labmates.registry import Registry
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.analysis import Params
from labmates.workflows.protocol.command import Command
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates.workflows.protocol.verb import VERBS, Verb


class ManyWords(SectionedCommand):
    """A command whose options of fields marked as ``words`` take all words up to the next option."""

    def __init__(self, *arguments: Any, words: Set[str], **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self._words = words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat these options before each of their words."""
        words: list[str] = []
        option = ""
        for word in args:
            if word in self._words:
                option = word
                continue
            option = "" if word.startswith("-") else option
            words += [option, word] if option else [word]
        return super().parse_args(ctx, words)


class Group(SectionedCommand, SuggestingGroup):
    """A group with commands made on demand: declared ones, and those that other packages add to it."""

    def __init__(self, declared: Mapping[str, Command], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._declared = declared

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return [*self._declared, *names_within(f"{self.name}/", VERBS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        declared = self._declared.get(cmd_name)
        return verb_within(f"{self.name}/{cmd_name}") if declared is None else made(cmd_name, declared)


def names_within(prefix: str, registry: Registry[Any]) -> Iterator[str]:
    """The names that begin with a prefix, without it."""
    return (name.removeprefix(prefix) for name in registry.names() if name.startswith(prefix))


def verb_within(path: str) -> click.Command | None:
    """The command that a package adds to a group, by ``GROUP/NAME``; None without one.

    Raises `UsageError` if it is in a package that is not installed.
    """
    VERBS.refuse_missing(path, shown=path.replace("/", " "))
    return verb_command(path.rpartition("/")[2], VERBS.get(path)) if path in VERBS else None


def verb_command(name: str, verb: Verb) -> click.Command:
    """The command of a verb."""
    if isinstance(verb.command.target, click.Command):
        return verb.command.target
    return made(name, verb.command.target, verb.summary)


def made(name: str, command: Command, summary: str = "") -> click.Command:
    """The click command of a declared command; the summary is the help of a pure group."""
    example = f"Example: {command.example}" if command.example else None
    run, model = command.run, command.params or Params
    if run is None:
        return Group(command.commands, name=name, help=summary, epilog=example)

    def callback(**values: Any) -> int:
        if click.get_current_context().invoked_subcommand is not None:
            return 0
        params = parsed(model, values)
        others = {name: value for name, value in values.items() if name not in model.model_fields}
        with CommandLab(others, _given(command, others), again=_again(params)) as lab:
            code = present(run(lab, params), values)
        return max(lab.code, code)

    for decorate in reversed(list(_decorators(command))):
        callback = decorate(callback)
    options = options_of(model)
    for option in options:
        option.required = model.model_fields[option.name or ""].is_required()
    sections = _sections(command, model)
    words = {flag(name) for name, field in model.model_fields.items() if field.json_schema_extra == {"words": True}}
    group: dict[str, Any] = {"cls": Group, "declared": command.commands, "invoke_without_command": True}
    attributes = group if command.commands else {"cls": ManyWords, "words": words}
    make: Callable[[Any], click.Command] = click.command(name, help=getdoc(run), epilog=example, **attributes)
    made_command = make(callback)
    assert isinstance(made_command, SectionedCommand)
    made_command.sections = MappingProxyType({"Options": [], **sections})
    return with_arguments_first(made_command, [*options, *chain(*sections.values())])


def _given(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    if not command.kind:
        return {}
    return condition_given({**values, **dict.fromkeys(command.fixed)}, EXPERIMENTS.get(command.kind).condition)


def _decorators(command: Command) -> Iterator[Callable[[Any], Any]]:
    yield choosing(command.choices)
    if command.has_figures:
        yield figure_options
    if command.objects is not None:
        yield json_option(command.objects)
    if command.has_tables:
        yield out_option
    if command.has_store:
        yield store_option
        yield verbose_option


def _sections(command: Command, model: type[Params]) -> dict[str, list[click.Parameter]]:
    if command.kind:
        return condition_sections(command.kind, leave_out=command.fixed, settings_left_out=model.model_fields)
    models = {"Models": options_of(ModelOptions)} if command.asks_models else {}
    return models | ({"Execution": options_of(RunSettings, leave_out=["models"])} if command.executes else {})


def _again(params: Params) -> str:
    """The command line of the verb with its own parameters."""
    path = click.get_current_context().command_path
    return " ".join([path, shlex.join(_options_for(params.model_dump(mode="json", exclude_unset=True)))]).strip()


def _options_for(values: Mapping[str, Any]) -> Iterator[str]:
    """The options of a command line for these values."""
    for name, value in values.items():
        if value is True:
            yield flag(name)
        elif isinstance(value, dict):
            for key, entry in value.items():
                yield from (flag(name), f"{key}={entry}")
        elif isinstance(value, list):
            for entry in value:
                yield from (flag_of_one(name), str(entry))
        else:
            yield from (flag(name), str(value))
