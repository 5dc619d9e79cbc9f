"""A run's products as files: artifacts, findings, code, figures, and files written by code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.event_text import artifact_text
from labmates.records.events import Event, ToolCallEvent
from labmates.records.store import Store


def save_material(events: Iterable[Event], bodies: Bodies, folder: Path) -> list[Path]:
    """Write a run's products to a new or empty folder and return the files.

    They are ``artifacts/NAME.vN.md``, ``findings/TEAM.vN.json``, and for each step ``code/STEP.py``,
    ``figures/STEP.N.png`` and ``out/STEP/NAME``. Names derive from steps and numbers, except for files that code wrote
    to ``out/``, whose names are checked. The contents come from models and their code: never run or unpickle them.
    Raises `UsageError` if the folder is not empty or can't be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"the folder '{folder}' is not empty; name a new one")
        for name, content in _material(events, bodies):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.append(path)
    except OSError as error:
        raise UsageError(f"can't write to '{folder}': {error.strerror or error}") from error
    return written


def newest_artifact(store: Store, run_id: str, name: str) -> str | None:
    """The newest version of an artifact; None if the run has no such artifact."""
    artifacts = (event for event in store.events(run_id, kind="artifact") if event.type == "artifact")
    versions = [event for event in artifacts if event.name == name]
    return artifact_text(Bodies(store.bodies(run_id))[versions[-1].content]) if versions else None


def _material(events: Iterable[Event], bodies: Bodies) -> Iterator[tuple[PurePosixPath, bytes]]:
    for event in events:
        if event.type == "artifact":
            name = f"{plain_name(event.name)}.v{event.version}.md"
            yield PurePosixPath("artifacts", name), _utf8(artifact_text(bodies[event.content]))
        elif event.type == "findings":
            name = f"{plain_name(event.team)}.v{event.version}.json"
            text = json.dumps(bodies[event.findings], ensure_ascii=False, indent=2)
            yield PurePosixPath("findings", name), _utf8(f"{text}\n")
        elif event.type == "tool_call":
            yield from _of_code(event, bodies)


def _of_code(event: ToolCallEvent, bodies: Bodies) -> Iterator[tuple[PurePosixPath, bytes]]:
    step = plain_name(event.step)
    code = bodies[event.arguments].get("code")
    if event.status and isinstance(code, str):
        yield PurePosixPath("code", f"{step}.py"), _utf8(code)
    for number, image in enumerate(event.images, start=1):
        yield PurePosixPath("figures", f"{step}.{number}.png"), bodies[image]
    for name, number in event.files.items():
        parts = PurePosixPath(name).parts
        if parts and not any(part in ("..", "/") or "\0" in part for part in parts):
            yield PurePosixPath("out", step, *parts), bodies[number]


def plain_name(name: str) -> str:
    """A file name without folders and leading dots."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.strip(".")[:150] or "unnamed"


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
