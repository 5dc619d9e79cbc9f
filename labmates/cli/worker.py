"""``labmates worker``: joins a study from any machine that reaches its store."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import verbose_option
from labmates.cli.console import err, notify

if TYPE_CHECKING:
    from labmates.workflows.calls.stop_signal import StopSignal

_WATCH_SECONDS = 1.0


@click.command(epilog="Example: labmates worker postgresql://lab@db.example.org/runs --study sweep")
@click.argument("store", metavar="[STORE]", required=False)
@verbose_option
@click.option("--study", metavar="NAME", help="The study to work on; by default the only one in the store.")
@click.option("--no-wait", is_flag=True, help="Exit when no run is waiting, even if other workers still execute some.")
@click.option("--max-concurrent-runs", metavar="N", help="Maximum number of concurrent runs. [default: the study's]")
@click.option("--sandbox", metavar="NAME", help="Sandbox of agents' code. [default: the study's]")
@click.option("--max-sandboxes", metavar="N", help="Maximum number of open sandboxes. [default: the study's]")
@click.option("--base-url", metavar="URL", help="Address of the model server. [default: the study's]")
@click.option("--parent", type=int, hidden=True, help="Stop when this process ends.")
def worker(
    store: str | None, study: str | None, no_wait: bool, base_url: str | None, parent: int | None, **options: Any
) -> int:
    """Execute runs of a study, from any machine that reaches its store.

    STORE is the store's URL. The default, LABMATES_STORE, keeps a password out of the process list. Start the study
    with 'labmates study run'; any number of workers can join, each run is executed by one worker, and workers exit when
    all runs have ended.
    """
    from labmates.cli.interrupt import run_until_stopped
    from labmates.errors import explaining
    from labmates.records.database import PATIENCE_SECONDS
    from labmates.records.store import Store
    from labmates.records.studies import pauses
    from labmates.studies.settings import RunSettings
    from labmates.studies.study import stored_spec, work_on
    from labmates.util.loops import running
    from labmates.workflows.calls.stop_signal import StopSignal
    from labmates.workflows.protocol.verb import PAUSED_CODE

    # Workers are started by schedulers, also while the database restarts.
    with err().status(f"opening the store (waiting for it up to {PATIENCE_SECONDS:.0f} s) …"):
        database = Store(store, must_exist=True, patient=True)
    with database:
        spec = stored_spec(database, study)
        before = spec.settings().model_dump()
        models = before["models"] | ({"base_url": base_url} if base_url else {})
        with explaining():
            changed = {name: value for name, value in options.items() if value is not None}
            settings = RunSettings.model_validate({**before, **changed, "models": models})
        stop_signal = StopSignal()

        async def work() -> int:
            async with running(_stop_without(parent, stop_signal)) if parent else nullcontext():
                return await work_on(
                    database, spec, settings=settings, stop_signal=stop_signal, notify=notify, wait=not no_wait
                )

        ended = run_until_stopped(work(), stop_signal, notify)
        # The process that started the worker reports pauses itself.
        paused = [] if parent else pauses(database, spec.name)
    if ended is None or stop_signal.pulled.is_set():
        return 130
    if parent is None:
        notify(f"{ended} runs ended here.")
    for reason, _ in paused:
        notify(reason)
    return PAUSED_CODE if paused else 0


async def _stop_without(parent: int, stop_signal: StopSignal) -> None:
    while os.getppid() == parent:  # noqa: ASYNC110
        await asyncio.sleep(_WATCH_SECONDS)
    stop_signal.pull()
