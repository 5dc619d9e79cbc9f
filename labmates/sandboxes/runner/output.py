"""Limits on a cell's output: text, figures, tracebacks."""

from __future__ import annotations

import linecache
import sys
import threading
import traceback
import warnings
from types import TracebackType
from typing import Any, TextIO

MESSAGE_CHARS = 4_000
"""How long an exception's own text may be."""
_TEXT_CHARS = 2_000_000  # text of one cell
_TAIL_CHARS = 2_000  # the end of a longer text, which is kept too
_FRAMES = 6  # frames of one traceback, from its beginning and from its end
_IMAGES = 10  # figures of one cell
_IMAGE_CHARS = 11_500_000  # one figure in base64: 8 MB and a little

_format_warning = warnings.formatwarning


def encodable(text: str) -> str:
    """`text` without lone surrogates, which can't be encoded."""
    return text.encode("utf-8", "replace").decode("utf-8")


class TextBudget:
    """Text that the current cell may still send; of longer output, the end is kept and the rest counted."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """Begin a new cell."""
        with self._lock:
            self._room = _TEXT_CHARS
            self._tail = ""
            self.images = _IMAGES
            self.dropped = 0
            self._warnings: set[str] = set()

    def is_new(self, warning: str) -> bool:
        """Whether the cell has not warned so yet."""
        with self._lock:
            known = warning in self._warnings
            self._warnings.add(warning)
            return not known

    def take(self, text: str) -> str:
        """The part of `text` that may be sent."""
        with self._lock:
            head, rest = text[: self._room], text[self._room :]
            self._room -= len(head)
            excess = len(self._tail) + len(rest)
            self._tail = (self._tail + rest[-_TAIL_CHARS:])[-_TAIL_CHARS:]
            self.dropped += excess - len(self._tail)
            return encodable(head)

    def tail(self) -> str:
        """The end of the text that was too long, once."""
        with self._lock:
            tail, self._tail = self._tail, ""
            return encodable(tail)


BUDGET = TextBudget()


def short_traceback(error: BaseException, trace: TracebackType | None) -> list[str]:
    """Lines of a traceback that show the agent's own code and the place where a library raised."""
    frames = list(traceback.extract_tb(trace))
    cells = [frame for frame in frames if frame.filename.startswith("<cell")]
    if cells and frames[-1] is not cells[-1]:
        cells.append(frames[-1])
    for frame in cells:
        frame.filename = _short(frame.filename)
    lines = traceback.StackSummary.from_list(cells[:_FRAMES]).format()
    if cells[_FRAMES:]:
        last = cells[max(_FRAMES, len(cells) - _FRAMES) :]
        left_out = len(cells) - _FRAMES - len(last)
        lines += [f"  [... {left_out} calls left out ...]"] * bool(left_out)
        lines += traceback.StackSummary.from_list(last).format()
    if cells:
        lines.insert(0, "Traceback (most recent call last):")
    message = "".join(traceback.format_exception_only(type(error), error))
    if len(message) > MESSAGE_CHARS:
        message = f"{message[:MESSAGE_CHARS]} [... {len(message) - MESSAGE_CHARS:,} characters left out]"
    return [encodable(line.rstrip("\n")) for line in (*lines, message)]


def short_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """The text of a warning, which is the same wherever libraries are installed."""
    return _format_warning(message, category, _short(filename), lineno, line or linecache.getline(filename, lineno))


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning once a cell: libraries repeat theirs with every fit."""
    text = short_warning(message, category, filename, lineno, line)
    if BUDGET.is_new(text):
        (file or sys.stderr).write(text)


def _short(path: str) -> str:
    """The path of a module without the folder in which modules are looked for."""
    roots = [root for root in sys.path if root and path.startswith(f"{root}/")]
    return path.removeprefix(max(roots, key=len, default="")).lstrip("/")


def trim(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """`content` of a message of `kind`, cut to what may be sent to the other side."""
    if kind == "execute_input":
        return {}
    if kind in ("display_data", "update_display_data", "execute_result"):
        data, image = content["data"], content["data"].get("image/png")
        content["metadata"] = {}
        if image is not None and BUDGET.images > 0 and len(image) <= _IMAGE_CHARS:
            BUDGET.images -= 1
            content["data"] = {"image/png": image}
        elif image is not None:
            content["data"] = {"labmates/left-out": ""}
        else:
            content["data"] = {"text/plain": BUDGET.take(str(data.get("text/plain", "")))}
    if kind in ("error", "execute_reply"):
        content.update({name: encodable(str(content[name])[:200]) for name in ("ename", "evalue") if name in content})
    if kind == "execute_reply":
        content.update(payload=[], traceback=[], labmates_dropped=BUDGET.dropped)
    return content
