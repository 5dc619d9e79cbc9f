"""Programs on seats: what counts of what they print, and how many can run at once."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, WarningEvent
from labmates.sandboxes.engine import connect
from labmates.sandboxes.folders import in_thread
from labmates.sandboxes.image.names import image_tag
from labmates_doors.seats.containers import run_in_container
from tests.support.puppet import dutiful
from tests.support.seats import seated
from tests.workflows.science.test_science_lab import Lab

IMAGES = [
    pytest.param("", marks=pytest.mark.needs("bubblewrap"), id="bubblewrap"),
    pytest.param(image_tag(), marks=pytest.mark.needs("docker"), id="docker"),
]
TALKATIVE = """
import sys
for stream in (sys.stdout, sys.stderr):
    stream.write("The beginning. ")
    for _ in range(6):
        stream.write("é" * (1 << 20))
    stream.write(" The end.")
"""
WAITS_AT_GATE = """
import os, sys, time
end = time.monotonic() + 120
while not os.path.exists(sys.argv[1]):
    if time.monotonic() > end:
        sys.exit("the gate stayed closed")
    time.sleep(0.05)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


@pytest.mark.parametrize("image", IMAGES)
async def test_of_a_flood_of_output_the_beginning_and_the_end_count(image: str, lab: Lab) -> None:
    seat = {"command": [sys.executable, "-c", TALKATIVE], "image": image}
    run = await lab.play(dutiful, organisation=seated(**seat))
    *_, paper = [e for e in lab.events(run) if isinstance(e, ArtifactEvent) and e.name == "final_paper"]
    text = Bodies(lab.store.bodies(run.id))[paper.content]
    assert text.startswith("The beginning. ééé")
    assert text.endswith("ééé The end.")
    assert "[... 6,231,580 characters left out ...]" in text


@pytest.mark.parametrize("image", IMAGES)
async def test_the_end_of_a_programs_complaint_is_told(image: str, lab: Lab) -> None:
    seat = {"command": [sys.executable, "-c", f"{TALKATIVE}\nraise SystemExit(3)"], "image": image}
    run = await lab.play(dutiful, organisation=seated(**seat), repair_turns=0)
    warnings = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert any("ended with exit status 3. ééé" in text and text.endswith("The end.") for text in warnings)


@pytest.mark.needs("docker")
async def test_many_programs_at_once_leave_the_threads_of_the_lab_alone(tmp_path: Path) -> None:
    given, gate, inside = tmp_path / "input", tmp_path / "gate", Path(f"/gate-{secrets.token_hex(8)}")
    given.touch()
    gate.mkdir()
    threads = (os.cpu_count() or 1) + 4  # of asyncio
    command = ["python3", "-c", WAITS_AT_GATE, str(inside / "open")]
    programs = [
        asyncio.create_task(run_in_container("", command, {gate: inside}, {}, given)) for _ in range(threads + 1)
    ]

    def wait() -> None:
        running = {"volume": str(inside), "status": "running"}
        with closing(connect()) as client:
            while len(client.containers.list(filters=running)) < threads and not any(task.done() for task in programs):
                time.sleep(0.2)

    await in_thread(wait)
    # If the programs held all threads, the gate would stay closed until they give up.
    await asyncio.to_thread((gate / "open").touch)
    assert [ended.status for ended in await asyncio.gather(*programs)] == [0] * len(programs)
