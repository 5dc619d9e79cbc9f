"""Completion of names in the shell: runs and studies of the store, and what is registered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from labmates.errors import LabmatesError
from labmates.registry import Registry, lazy

_REGISTRIES: Final[Mapping[str, str]] = {
    "task": "labmates.tasks.registry:TASKS",
    "game": "labmates.games.registry:GAMES",
    "dilemma": "labmates.games.dilemmas:DILEMMAS",
    "mechanism": "labmates.mechanisms.registry:MECHANISMS",
    "judge": "labmates.judges.registry:JUDGES",
    "organisation": "labmates.agents.organisation_files:ORGANISATIONS",
    "kind": "labmates.workflows.protocol.experiment:EXPERIMENTS",
    "sandbox": "labmates.sandboxes.choose:BACKENDS",
}
_OF_RUNS: Final = ("run", "run_id", "name", "what")
_OF_STUDIES: Final = ("study", "name")
_OF_MODELS: Final = ("model", "entrant", "judge")
_MOST_RUNS: Final = 100


def offer_names(command: click.Command) -> None:
    """Let the parameters of a command complete names."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = _Name()


class _Name(click.types.StringParamType):
    """A text whose completions follow from the name of its parameter."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        what = (param.name or "").removesuffix("s")
        group = (ctx.parent.info_name or "").removesuffix("s") if ctx.parent else ""
        if what == "name" and group in (*_REGISTRIES, "model"):
            what = group
        if (what, ctx.info_name) == ("game", "dilemma"):
            what = "dilemma"
        names = dict.fromkeys(name for name in _names(what, ctx, incomplete) if name.startswith(incomplete))
        # In place of the names, if there are none, files are offered.
        return [CompletionItem(incomplete, type="file"), *map(CompletionItem, names)]


def _names(what: str, ctx: click.Context, incomplete: str) -> Iterator[str]:
    if what in _REGISTRIES:
        registry: Registry[Any] = lazy(_REGISTRIES[what]).target
        yield from registry.names()
    if what in _OF_MODELS:
        yield from _models()
    if what in _OF_STUDIES and ctx.parent and ctx.parent.info_name == "study":
        from labmates.studies import ready

        yield from ready.names()
    if what in (*_OF_RUNS, *_OF_STUDIES):
        yield from _stored(what, ctx, incomplete)


def _models() -> Iterable[str]:
    from labmates.models.entries import named_entries
    from labmates.models.scripted import BASELINES

    return [*named_entries(), *(f"scripted:{name}" for name in BASELINES.names())]


def _stored(what: str, ctx: click.Context, incomplete: str) -> Iterator[str]:
    """The runs, the newest first, and studies of the store; nothing where it can't be read."""
    from labmates.records.listing import Chosen, facets, run_page
    from labmates.records.store import Store

    try:
        with Store(ctx.params.get("store"), must_exist=True) as store:
            if what in _OF_STUDIES:
                yield from facets(store).studies
            if what in _OF_RUNS:
                yield from (run.id for run in run_page(store, Chosen(text=incomplete), size=_MOST_RUNS))
    except LabmatesError:
        return


class _Bash(BashComplete):
    """Bash ends a word at a colon, so it gets, and keeps, only what follows the last one."""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in (*args, incomplete):
            if words and (word[:1] in (":", "=") or words[-1][-1:] in (":", "=")):
                words[-1] += word
            else:
                words.append(word)
        before, colon, _ = words[-1].rpartition(":")
        self._kept = (before.partition("=")[2] if before.startswith("--") else before) + colon
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value.removeprefix(self._kept)}"


add_completion_class(_Bash)
