"""Python in texts of models, which is read and never run."""

from __future__ import annotations

import ast
import warnings


def statements(text: str) -> list[ast.stmt] | None:
    """The statements of a text; None if it is not Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes, which Python would print
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
