"""Python in texts, which is read and not run."""

from __future__ import annotations

import ast
import threading
import warnings

# CPython counts the depth of trees for all threads together (SystemError: "recursion depth mismatch").
_ONE_AT_A_TIME = threading.Lock()


def parsed(text: str) -> ast.Module:
    """The syntax tree of a text, in any thread. Raises as `ast.parse`."""
    with _ONE_AT_A_TIME:
        return ast.parse(text)


def statements(text: str) -> list[ast.stmt] | None:
    """The statements of a text; None if it is not Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes, which Python would print
            return parsed(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
