from __future__ import annotations

from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, ToolCallEvent
from labmates.records.run_files import save_material

PNG = b"\x89PNG\r\n\x1a\nrest"


def call(bodies: Bodies, **values: object) -> ToolCallEvent:
    arguments, result = bodies.keep({"code": "1 + 1"}), bodies.keep("2")
    known = {"step": "data/0/data_lead/work/0/1", "tool": "run_code", "status": "ok", "ok": True}
    return ToolCallEvent.model_validate({**known, "arguments": arguments, "result": result, **values})


def test_all_that_a_run_has_made_becomes_files(tmp_path: Path) -> None:
    bodies = Bodies()
    events: list[Event] = [
        call(
            bodies, images=[bodies.keep(PNG)], files={"tables/a.csv": bodies.keep(b"a,b\n"), "b.bin": bodies.keep(PNG)}
        ),
        ArtifactEvent(name="final_paper", version=2, content=bodies.keep("The paper \ud800"), step="writing/0"),
    ]
    folder = tmp_path / "saved"
    written = save_material(events, Bodies(bodies.take_new()), folder)
    contents = {str(path.relative_to(folder)): path.read_bytes() for path in written}
    step = "data-0-data_lead-work-0-1"
    assert contents == {
        f"code/{step}.py": b"1 + 1",
        f"figures/{step}.1.png": PNG,
        f"out/{step}/tables/a.csv": b"a,b\n",
        f"out/{step}/b.bin": PNG,
        "artifacts/final_paper.v2.md": b"The paper ?",
    }


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", "a\0b", "..", ""])
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    bodies = Bodies()
    event = call(bodies, files={name: bodies.keep(b"x")}, step=name or "x")
    artifact = ArtifactEvent(name=name or "x", version=1, content=bodies.keep("text"))
    folder = tmp_path / "deep" / "saved"
    written = save_material([event, artifact], bodies, folder)
    assert len(written) == 2
    assert all(path.resolve().is_relative_to(folder) for path in tmp_path.rglob("*") if path.is_file())


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(UsageError, match="not empty"):
        save_material([], Bodies(), tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="can't write to"):
        save_material([], Bodies(), tmp_path / "file" / "inner")
