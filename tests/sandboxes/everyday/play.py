"""Plays the calls of a file, one a line, and writes down what each gave; runs in a sandbox, and in plain Python.

Written as one cell: `play` and what it needs are names of the session.
"""

import ast
import json
import numbers
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def shown(value: Any) -> str:
    """A value as text, to six digits; of an object that has none, its type."""
    if isinstance(value, (bool, np.bool_)) or value is None:
        return str(value)
    if isinstance(value, numbers.Number) and not isinstance(value, np.timedelta64):
        return f"{value:.6g}"
    if isinstance(value, (str, np.timedelta64)):
        return str(value)
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return shown(value.to_dict())
    if isinstance(value, np.ndarray):
        return f"{value.shape} {shown(value.tolist())}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, pd.Index)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return type(value).__name__


def play(name: str, lines: list[str], names: dict[str, Any]) -> None:
    """Write to ``out/NAME.json`` what each line gave: its value, or the error."""
    given = []
    warnings.simplefilter("ignore")
    for line in lines:
        try:
            body = ast.parse(line).body
            last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None  # type: ignore[attr-defined]
            exec(compile(ast.Module(body, []), "<call>", "exec"), names)
            value = eval(compile(last, "<call>", "eval"), names) if last else None
            given.append([line, "gave", shown(value)])
        except BaseException as error:
            given.append([line, "raised", f"{type(error).__name__}: {error}"[:500]])
    Path(f"out/{name}.json").write_text(json.dumps(given))
