"""The verbs that experiments and other packages bring (`labmates.workflows.verb`), as commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Set
from inspect import getdoc
from typing import Any

import click

from labmates.cli.command import options_for
from labmates.cli.common import RegistryGroup, json_option, store_option, verbose_option
from labmates.cli.figures import figure_options
from labmates.cli.lab import CommandLab, useless
from labmates.cli.options import condition_given, flag, options_of, with_arguments_first
from labmates.cli.results import parsed, present
from labmates.cli.runs import choosing
from labmates.cli.tables import out_option
from labmates.models.options import ModelOptions
from labmates.studies.settings import RunSettings
from labmates.workflows.analysis import Params
from labmates.workflows.experiment import EXPERIMENTS
from labmates.workflows.verb import Verb


class ManyWords(click.Command):
    """A command with options that take all words up to the next option: those of fields marked as ``words``."""

    def __init__(self, *arguments: Any, words: Set[str], **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self._words = words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat such an option before each of its words."""
        words: list[str] = []
        option = ""
        for word in args:
            if word in self._words:
                option = word
                continue
            option = "" if word.startswith("-") else option
            words += [option, word] if option else [word]
        return super().parse_args(ctx, words)


class Group(RegistryGroup):
    """The commands of a group of verbs, each made when it is asked for."""

    def __init__(self, verbs: Mapping[str, Verb], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the verbs."""
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb."""
        return verb_command(cmd_name, self._verbs[cmd_name]) if cmd_name in self._verbs else None


def verb_command(name: str, verb: Verb) -> click.Command:
    """The command of a verb, or its group."""
    example = f"Example: {verb.example}" if verb.example else None
    run = verb.run
    if run is None:
        return Group(verb.verbs, name=name, help=verb.summary, epilog=example)
    model: type[Params] = verb.params.target if verb.params else Params

    def callback(**values: Any) -> int:
        if click.get_current_context().invoked_subcommand is not None:
            return 0
        params = parsed(model, values)
        others = {name: value for name, value in values.items() if name not in model.model_fields}
        with CommandLab(others, _given(verb, others), again=_again(params)) as lab:
            code = present(run(lab, params), values)
        return max(lab.code, code)

    for decorate in reversed(list(_decorators(verb))):
        callback = decorate(callback)
    words = {flag(name) for name, field in model.model_fields.items() if field.json_schema_extra == {"words": True}}
    group: dict[str, Any] = {"cls": Group, "verbs": verb.verbs, "invoke_without_command": True}
    attributes = group if verb.verbs else {"cls": ManyWords, "words": words}
    make: Callable[[Any], click.Command] = click.command(name, help=getdoc(run.target), epilog=example, **attributes)
    return with_arguments_first(make(callback), list(_options(verb, model)))


def _given(verb: Verb, values: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the verb's experiment that the user gave."""
    if not verb.kind:
        return {}
    return condition_given({**values, **dict.fromkeys(verb.fixed)}, EXPERIMENTS.get(verb.kind).condition)


def _decorators(verb: Verb) -> Iterator[Callable[[Any], Any]]:
    yield choosing(verb.choices)
    if verb.has_figures:
        yield figure_options
    if verb.objects is not None:
        yield json_option(verb.objects)
    if verb.has_tables:
        yield out_option
    if verb.has_store:
        yield store_option
        yield verbose_option


def _options(verb: Verb, model: type[Params]) -> Iterator[click.Parameter]:
    for option in options_of(model):
        option.required = model.model_fields[option.name or ""].is_required()
        yield option
    if verb.kind:
        yield from options_of(EXPERIMENTS.get(verb.kind).condition, leave_out=verb.fixed)
        yield from options_of(RunSettings, leave_out=[*useless(verb.kind), *model.model_fields])
    if verb.kind or verb.asks_models:
        yield from options_of(ModelOptions)


def _again(params: Params) -> str:
    """The command line of the verb with its own parameters."""
    path = click.get_current_context().command_path
    return " ".join([path, shlex.join(options_for(params.model_dump(mode="json", exclude_unset=True)))]).strip()
