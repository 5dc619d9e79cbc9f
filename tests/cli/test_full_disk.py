"""A study on a disk that fills up: it stops with the reason, and goes on when there is room again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from labmates.records.store import Store
from labmates.records.studies import study_counts
from tests.support.children import Child, command
from tests.support.command_line import Labmates

STUDY = """
kind: science
models: [scripted:silent]
fixed: {task: anomaly, difficulty: easy}
grid: {visibility: [full, hidden]}
replicates: 4
sandbox: unsafe-local
concurrency: {max_concurrent_runs: 2}
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Make a small file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(path: Path) -> None:
    """Take all the room that there is."""
    with path.open("wb", buffering=0) as file:
        for size in (64 * 1024, 1024, 1):
            with suppress(OSError):  # no space left
                while file.write(bytes(size)):
                    pass


def test_a_study_that_filled_the_disk_goes_on_when_there_is_room(labmates: Labmates, disk: Path) -> None:
    (labmates.folder / "small.yaml").write_text(STUDY)
    url = f"sqlite:///{disk}/runs.db"
    arguments = ("study", "run", "small.yaml", "--store", url)
    with Child(command(*arguments), folder=labmates.folder) as process:
        store = Store(url)
        while not study_counts(store, "small").of("completed"):
            assert process.returncode is None
            time.sleep(0.05)
        store.close()
        fill(disk / "filler")
        _, said = process.communicate()
    assert process.returncode == 1
    assert f"the store '{url}' failed: database or disk is full" in said
    assert "Traceback" not in said
    assert "same command" in said
    (disk / "filler").unlink()
    done = labmates(*arguments)
    assert (done.code, "8 completed" in done.out) == (0, True)
    assert labmates("store", "check", "--store", url).out.startswith("8 runs checked; no faults.\n")
