"""Exceptions of plug-ins' code, told in a line."""

from __future__ import annotations

import traceback
from pathlib import Path

MOST_TOLD = 300
"""Most characters of an exception's text."""


def exception_text(error: BaseException) -> str:
    """An exception, and the last line of the plug-in's code in its traceback.

    Code beside that which caught it is not the plug-in's.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = (f"{Path(__file__).parents[1]}/", f"{Path(frames[0].filename).parent}/", "<frozen ")
    theirs = next((Path(frame.filename).parent for frame in frames if not frame.filename.startswith(ours)), None)
    last = next((frame for frame in reversed(frames) if Path(frame.filename).parent == theirs), frames[-1])
    text = " ".join(str(error).split())[:MOST_TOLD]
    how = "hangs: " if isinstance(error, TimeoutError) else ""
    return f"{how}raised {type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"
