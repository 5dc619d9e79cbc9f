"""The memory of processes without a control group: what belongs to no process counts, too."""

from __future__ import annotations

import subprocess
import sys

from labmates.sandboxes.control import SESSION_BYTES, Collector
from labmates.sandboxes.local import exceeds

HOLDS = """
import os
file = os.memfd_create("hidden")
for _ in range(64):
    os.write(file, b"x" * (1 << 20))
print("held", flush=True)
input()
"""


def test_files_in_memory_count() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert exceeds(child.pid, 60 << 20)
        assert not exceeds(child.pid, 512 << 20)
        child.kill()


def test_figures_have_the_room_of_files() -> None:
    collector, figure = Collector(), b"x" * (7 << 20)
    kept = [len(collector.within([figure] * 4)) for _ in range(4)]
    assert kept == [4, 4, 1, 0]
    assert sum(kept) * len(figure) <= SESSION_BYTES
