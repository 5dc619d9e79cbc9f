"""``labmates organisations new`` and ``labmates organisations check``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from labmates.agents.organisation_files import find_organisation
from tests.support.command_line import Labmates


def test_a_copy_of_an_organisation_is_one_that_can_be_changed(labmates: Labmates, tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    assert "labmates organisations check" in labmates("organisations", "new", "ours", "--folder", str(folder)).out
    ours = find_organisation(str(folder / "ours.yaml"))
    assert ours.name == "ours"
    assert ours.teams == find_organisation("decentralised").teams
    again = labmates("organisations", "new", "ours", "--folder", str(folder))
    assert again.code == 2
    assert "is not empty; choose another with --folder" in again.err
    shown = labmates("organisations", "show", str(folder / "ours.yaml")).out
    assert "roles/decentralised/peer.md" in shown
    assert re.search("^name: ours$", shown, re.MULTILINE)


def test_a_name_or_folder_that_can_not_be_used_is_told(labmates: Labmates) -> None:
    for arguments, said in (
        (["../x"], "name: a name has letters"),
        (["x", "--folder", "/proc/none"], "can't write to"),
    ):
        done = labmates("organisations", "new", *arguments)
        assert done.code == 2
        assert said in done.err


def test_an_organisation_is_drawn(labmates: Labmates) -> None:
    drawn = labmates("organisations", "draw", "hybrid").out
    assert 'phase_2["2. group: plan, work (others), talk, write"]' in drawn
    assert 'seat_member["member ×3"]' in drawn


def test_an_organisation_is_checked_by_its_name(labmates: Labmates) -> None:
    unknown = labmates("organisations", "check", "hybird")
    assert unknown.code == 2
    assert "Did you mean 'hybrid'?" in unknown.err
    checked = labmates("organisations", "check", "decentralised", "--baseline", "scripted:silent")
    assert checked.code == 1
    assert "error     states" in checked.out
    refused = labmates("organisations", "check", "solo", "--baseline", "openai:gpt")
    assert refused.code == 2
    assert "'openai:gpt' is not a scripted model" in refused.err


def test_the_check_refuses_an_instrument_that_the_task_does_not_have(labmates: Labmates, tmp_path: Path) -> None:
    labmates("organisations", "new", "ours", "--folder", str(tmp_path / "ours"))
    file = tmp_path / "ours" / "ours.yaml"
    file.write_text(file.read_text().replace("title:", "evidence: 9, title:"))
    checked = labmates("organisations", "check", str(file))
    assert checked.code == 2
    line = next(place for place, text in enumerate(file.read_text().splitlines(), 1) if "evidence: 9" in text)
    assert f"ours.yaml:{line}: teams.group.seats.peer.evidence: the task anomaly has 3 instruments" in checked.err
    assert "give a number from 1 to 3, not 9" in checked.err


def test_the_check_imports_no_other_experiment() -> None:
    code = (
        "import sys; import labmates_author.organisations; "
        "print(*(name for name in sys.modules if name.startswith('labmates.workflows.') and name.split('.')[2] in "
        "('dilemmas', 'games', 'populations', 'tournament')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "\n"
