"""Output files: files that code writes to ``out/``, within limits."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass, field
from typing import Any

from labmates.sandboxes.base import OutputFile
from labmates.sandboxes.control import MOST_BYTES, Control

FILES_PER_CALL = 10
SESSION_BYTES = 64 << 20
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff/\\]{1,200}")


@dataclass
class Collected:
    """The new and changed files of one call."""

    files: list[OutputFile] = field(default_factory=list)
    left_out: int = 0  # entries of ``out/`` beyond the limits: links, too many or too large files, odd names


class Collector:
    """Collects new and changed files of one session."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._left_out = 0
        self._room = SESSION_BYTES

    def forget(self) -> None:
        """Forget all files: ``out/`` is new and empty."""
        self._seen.clear()
        self._left_out = 0

    def within(self, figures: list[bytes]) -> list[bytes]:
        """The figures for which the session has room."""
        kept = []
        for figure in figures:
            if len(figure) <= self._room:
                self._room -= len(figure)
                kept.append(figure)
        return kept

    async def collect(self, control: Control) -> Collected:
        """The new files in ``out/``. Raises `SandboxError` if the sandbox does not answer."""
        collected = Collected()
        listing = await control.ask({"do": "list"})
        for name, size, version in _entries(listing.get("files")):
            if self._seen.get(name) == version:
                continue
            self._seen[name] = version
            content = None
            if _is_fine(name) and size <= min(MOST_BYTES, self._room) and len(collected.files) < FILES_PER_CALL:
                content = await self._content(control, name)
            if content is None:
                collected.left_out += 1
            else:
                self._room -= len(content)
                collected.files.append(OutputFile(name, content))
        beyond = listing.get("left_out")
        if isinstance(beyond, int) and beyond != self._left_out:
            collected.left_out += max(0, beyond - self._left_out)
            self._left_out = beyond
        return collected

    async def _content(self, control: Control, name: str) -> bytes | None:
        descriptor = await control.open(name)
        if descriptor is None:
            return None
        most = min(MOST_BYTES, self._room)
        try:
            content = await asyncio.to_thread(os.pread, descriptor, most + 1, 0)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return content if len(content) <= most else None


def _entries(listed: Any) -> list[tuple[str, int, str]]:
    """Name, size and version of the files in a runner's listing; malformed entries are dropped."""
    rows = listed if isinstance(listed, list) else []
    return [
        (row[0], row[1], row[2])
        for row in rows
        if isinstance(row, list) and len(row) == 3 and [type(value) for value in row] == [str, int, str]
    ]


def _is_fine(name: str) -> bool:
    parts = name.split("/")
    return len(name) <= 200 and all(_NAME.fullmatch(part) and part not in (".", "..") for part in parts)
