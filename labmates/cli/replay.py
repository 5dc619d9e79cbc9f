"""``labmates replay RUN``: whether a recorded run gives the same events again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import notify, print_json, quote, say
from labmates.cli.interrupt import run_until_stopped
from labmates.studies.settings import RunSettings

if TYPE_CHECKING:
    from labmates.studies.replay import Replayed
    from labmates.studies.rerun import Difference

MOST_SHOWN = 5
OTHER_CELLS = 3
"""Exit code if the record follows from itself, but code prints something else now."""


@click.command(epilog="Example: labmates replay 3f9a2c41d7 --sandbox docker")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--sandbox",
    metavar="TEXT",
    help=f"{RunSettings.model_fields['sandbox'].description} By default as in the run's settings.",
)
@json_option()
@store_option
@verbose_option
def replay(run_id: str, sandbox: str | None, as_json: bool, store: str | None) -> int:
    """Re-run an ended run from its recording, and check that the events and metrics match.

    No model is called: agents and judges get the recorded replies. The agents' code runs again, and judges score again,
    except judges that failed or whose version differs from the installed one. Labels are skipped. What follows code is
    computed from its recorded output. The exit code is 0 if everything matches, 3 if the record is consistent but some
    code prints something else now (for instance the time), and 1 if the record is inconsistent.
    """
    from labmates.records.store import Store
    from labmates.studies.replay import replay as execute

    with Store(store, must_exist=True) as database:
        replayed = run_until_stopped(execute(database, database.run(run_id), sandbox=sandbox, notify=notify))
    if replayed is None:
        return 130
    if as_json:
        told = {name: getattr(replayed, name) for name in ("follows", "compared", "left_out", "taken_over", "ran")}
        listed = {name: list(map(asdict, getattr(replayed, name))) for name in ("differences", "cells")}
        ends = {"id": replayed.run.id, "same": replayed.is_same, "whole": replayed.is_whole}
        print_json({**ends, **told, **listed})
    else:
        _print(replayed)
    return 0 if replayed.is_same else OTHER_CELLS if replayed.follows else 1


def _print(replayed: Replayed) -> None:
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(replayed.compared.items()))
    whole = sum(replayed.compared.values())
    if replayed.follows:
        same = "same" if replayed.is_same else "the record is consistent, some code prints something else now"
        say(f"{same}: {whole} events ({counts})")
    else:
        ended = "" if replayed.is_whole else "; it ended before the run's end"
        number = len(replayed.differences)
        say(
            f"the record is inconsistent: {number} differences in {whole} events ({counts}){ended}",
            style="red",
        )
    if replayed.left_out:
        left = ", ".join(f"{number} {kind}" for kind, number in sorted(replayed.left_out.items()))
        say(f"left out: {left}", style="dim")
    if replayed.taken_over:
        say(f"replayed from the original run: {replayed.taken_over} events", style="dim")
    _print_some(replayed.differences)
    if replayed.differences and not replayed.is_whole and len(replayed.differences) > MOST_SHOWN:
        _print_one(replayed.differences[-1])  # the cause of a replay's end
    if replayed.cells:
        say(
            f"{len(replayed.cells)} of {replayed.ran} cells print something else now, the first of them may change "
            "others; what follows was computed from their recorded output",
            style="yellow",
        )
        _print_some(replayed.cells)


def _print_some(differences: Sequence[Difference]) -> None:
    for difference in differences[:MOST_SHOWN]:
        _print_one(difference)
    if (more := len(differences) - MOST_SHOWN) > 0:
        say(f"and {more} more; all of them with --json")


def _print_one(difference: Difference) -> None:
    of = f", {difference.field}" if difference.field else ""
    say(f"\n{difference.step or 'the run'} ({difference.type}{of})", style="bold")
    for title, text in (("recorded", difference.recorded), ("now", difference.now)):
        quote(f"  {title}: {'nothing' if text is None else text}")
