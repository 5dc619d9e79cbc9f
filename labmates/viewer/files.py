"""Downloadable files of a run, by the number of an event or body, never by a name that a model chose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from labmates.errors import LabmatesError
from labmates.records.event_text import artifact_text
from labmates.records.reading import RunReader, plain_name

_PNG = b"\x89PNG\r\n\x1a\n"
MOST_PIXELS = 50_000_000
"""Maximum pixels of a picture; browsers use four bytes per pixel, however small the file."""


class AbsentError(LabmatesError):
    """The run, event or file of an address does not exist; `what` is its noun."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(text)
        self.what = what


@dataclass(frozen=True)
class KeptFile:
    """A file that browsers save and never show."""

    name: str
    media: str
    content: bytes


def figure(reader: RunReader, number: int) -> bytes:
    """A PNG picture of a run. Raises `AbsentError` if the body is not a picture, or too large for browsers."""
    value = reader.bodies.get(number)
    if not isinstance(value, bytes) or not value.startswith(_PNG):
        raise AbsentError("file", f"the run '{reader.run.id}' has no picture {number}")
    width, height = (int.from_bytes(value[place : place + 4], "big") for place in (16, 20))  # in the first chunk
    if width * height > MOST_PIXELS:
        raise AbsentError("file", f"the picture {number} is too large to be shown: {width:,} by {height:,} pixels")
    return value


def file_of(reader: RunReader, number: int, place: int) -> KeptFile:
    """The artifact of an event (place 0), or one of the files that its code wrote, from 1.

    Raises `AbsentError` if the file does not exist.
    """
    event = reader.span(number, number).get(number)
    if event is not None and event.type == "artifact" and place == 0:
        text = artifact_text(reader.bodies.get(event.content, ""))
        name = f"{plain_name(event.name)}.v{event.version}.md"
        return KeptFile(name, "text/plain; charset=utf-8", text.encode("utf-8", "replace"))
    if event is not None and event.type == "tool_call" and 1 <= place <= len(event.files):
        name, body = list(event.files.items())[place - 1]
        content = reader.bodies.get(body, b"")
        data = content if isinstance(content, bytes) else artifact_text(content).encode("utf-8", "replace")
        return KeptFile(plain_name(PurePosixPath(name).name), "application/octet-stream", data)
    raise AbsentError("file", f"the event {number} of the run '{reader.run.id}' has no file {place}")
