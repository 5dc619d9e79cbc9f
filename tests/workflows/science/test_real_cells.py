"""Cells that a strong model wrote in runs of the lab: beside others, they end and print as alone, each time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from labmates.sandboxes.base import CodeResult
from labmates.sandboxes.local import PlainLauncher
from labmates.sandboxes.session import KernelBackend
from labmates.tasks.registry import get_task
from labmates.tasks.salt import data_seed
from labmates.util.seeds import derive
from labmates.workflows.science.lab.evidence import SHARED, prepare

FOLDER = Path(__file__).with_name("real_cells")
LIMIT = 1.5


def table(session: dict[str, Any], folder: Path) -> Path:
    """The data set of a session, remade from its seed unless the task is an own one."""
    path = FOLDER / f"{session['task']}.csv"
    if not path.exists():
        path = folder / path.name
        seed = data_seed(derive(session["seed"], "dataset"))
        made = prepare(get_task(session["task"]), seed, session["difficulty"], SHARED, "team")
        path.write_bytes(made.parts[0].csv())
    return path


async def test_real_cells_print_and_stop_the_same_with_eight_kernels_at_once(tmp_path: Path) -> None:
    sessions = json.loads((FOLDER / "cells.json").read_bytes())
    backend = KernelBackend("unsafe-local", PlainLauncher())

    async def played(session: dict[str, Any]) -> list[CodeResult]:
        sandbox = await backend.open(table(session, tmp_path))
        return [await sandbox.run(cell, LIMIT) for cell in session["cells"]]

    try:
        results = await asyncio.gather(*(played(session) for session in [*sessions, *sessions]))
    finally:
        await backend.close()
    first, second = results[: len(sessions)], results[len(sessions) :]
    ends = [[cell.status for cell in cells] for cells in first]
    assert ends == [["ok", "ok"], ["ok", "ok"], ["ok", "timeout"], ["ok", "error"]]
    assert [[cell.status for cell in cells] for cells in second] == ends
    # Where a limit stops code is a matter of the machine's speed.
    texts, again = ([c.text for cells in half for c in cells if c.status != "timeout"] for half in (first, second))
    assert texts == again
