"""Python in texts, which is read and not run."""

from __future__ import annotations

import ast
import contextlib
import warnings

_TRIES = 50
"""Of one text, while other threads parse: under the worst load each tenth try failed."""


def parsed(text: str) -> ast.Module:
    """The syntax tree of a text, in any thread. Raises as `ast.parse`."""
    for _ in range(_TRIES):
        # CPython counts the depth of trees for all threads together, those of other libraries among them (gh-106905).
        with contextlib.suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def statements(text: str) -> list[ast.stmt] | None:
    """The statements of a text; None if it is not Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes, which Python would print
            return parsed(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
