"""Options that choose runs of a store, for the verbs that work on many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from labmates.cli.common import F

if TYPE_CHECKING:
    from labmates.workflows.analysis import Choice

_CHOICES: Final[Mapping[Choice, Callable[[Any], Any]]] = {
    "runs": click.argument("run_ids", nargs=-1, metavar="[RUN]..."),
    "study_argument": click.argument("study", required=False),
    "study": click.option("--study", metavar="NAME", help="Runs of this study."),
    "kind": click.option("--kind", metavar="KIND", help="Runs of this kind of experiment."),
    "task": click.option("--task", metavar="TASK", help="Runs of this task."),
}


def choosing(choices: Iterable[Choice]) -> Callable[[F], F]:
    """A decorator that adds arguments and options by which runs are chosen, in this order."""

    def add(function: F) -> F:
        for choice in reversed(tuple(choices)):
            function = _CHOICES[choice](function)
        return function

    return add


run_choice = choosing(("runs", "study", "kind", "task"))
"""Adds the arguments RUN... and the options ``--study``, ``--kind`` and ``--task``."""
