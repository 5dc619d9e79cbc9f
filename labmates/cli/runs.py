"""Options that choose runs of a store, for the verbs that work on many."""

from __future__ import annotations

import click

from labmates.cli.common import F


def run_choice(function: F) -> F:
    """Add the arguments RUN... and the options ``--study``, ``--kind`` and ``--task``."""
    parts = (
        click.argument("run_ids", nargs=-1, metavar="[RUN]..."),
        click.option("--study", metavar="NAME", help="Runs of this study."),
        click.option("--kind", metavar="KIND", help="Runs of this kind of experiment."),
        click.option("--task", metavar="TASK", help="Runs of this task."),
    )
    for part in reversed(parts):
        function = part(function)
    return function
