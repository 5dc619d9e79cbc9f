"""``labmates replay RUN``: does a recorded run give the same events again?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import clean, err, out, print_json
from labmates.cli.interrupt import run_until_stopped
from labmates.studies.settings import RunSettings

if TYPE_CHECKING:
    from labmates.studies.differences import Difference
    from labmates.studies.replay import Replayed

MOST_SHOWN = 5


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

    No model is called: each call gets the recorded reply, calls of judges too. The agents' code runs again, and the
    judges score again. Skipped are labels, judges that failed, and judges of another version than the installed one.
    The exit code is 0 if everything matches, else 1.
    """
    from labmates.records.store import Store
    from labmates.studies.replay import replay as execute

    def notify(text: str) -> None:
        err().print(clean(text), markup=False)

    with Store(store, must_exist=True) as database:
        found = run_until_stopped(execute(database, database.run(run_id), sandbox=sandbox, notify=notify))
    if found is None:
        return 130
    if as_json:
        print_json(_json(found))
    else:
        _print(found)
    return 0 if found.is_same else 1


def _json(found: Replayed) -> dict[str, object]:
    return {
        "id": found.run.id,
        "same": found.is_same,
        "whole": found.is_whole,
        "compared": dict(found.compared),
        "left_out": dict(found.left_out),
        "taken_over": found.taken_over,
        "differences": [asdict(one) for one in found.differences],
    }


def _print(found: Replayed) -> None:
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(found.compared.items()))
    whole = sum(found.compared.values())
    if found.is_same:
        out().print(f"same: {whole} events ({counts})", markup=False)
    else:
        ended = "" if found.is_whole else "; it ended before the run's end"
        out().print(f"different: {len(found.differences)} differences in {whole} events ({counts}){ended}", style="red")
    if found.left_out:
        left = ", ".join(f"{number} {kind}" for kind, number in sorted(found.left_out.items()))
        out().print(f"left out: {left}", style="dim")
    if found.taken_over:
        out().print(f"told again, from the run that it was forked from: {found.taken_over} events", style="dim")
    # What ended a replay comes last, and is never left out.
    shown = found.differences[:MOST_SHOWN]
    for one in shown:
        _print_one(one)
    if (more := len(found.differences) - len(shown)) > 0:
        out().print(f"and {more} more; all of them with --json")
        if not found.is_whole:
            _print_one(found.differences[-1])


def _print_one(one: Difference) -> None:
    of = f", {one.field}" if one.field else ""
    out().print(clean(f"\n{one.step or 'the run'} ({one.type}{of})"), style="bold", markup=False)
    for title, text in (("recorded", one.recorded), ("now", one.now)):
        out().print(clean(f"  {title}: {'nothing' if text is None else text}"), markup=False)
