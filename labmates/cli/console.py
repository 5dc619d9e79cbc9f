"""Where the command line writes: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_FILE_WIDTH = 160  # what goes to a file need not fit a screen
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@cache
def out() -> Console:
    """Return the console of standard output."""
    from rich.console import Console

    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return Console(highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())
    return Console(highlight=False, emoji=False, soft_wrap=True, width=_FILE_WIDTH)


@cache
def err() -> Console:
    """Return the console of standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=not sys.stderr.isatty())


def print_json(data: dict[str, Any]) -> None:
    """Write one JSON object as one line to standard output."""
    sys.stdout.write(json.dumps(data, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Write an error message to standard error."""
    sys.stderr.write(f"labmates: {clean(text)}\n")


def clean(text: str) -> str:
    """Return text without control characters: what a model wrote must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
