"""The code of baselines: selection and order of cells, and their division into calls that fit a reply."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

RESTORING = "restoring"
"""The cell with the functions that restore divided evidence: `labmates.tasks.restoring`."""

TITLES = {
    RESTORING: "learn how parts fit together",
    "glance": "count rows and values",
    "prepare": "see the layout of the table",
    "profile": "describe every column",
    "panel_clean": "repair names, units and slips",
    "panel_patterns": "look for common movement",
    "panel_model": "fit the growth model",
    "panel_future": "forecast with a held-out year",
    "panel_compare": "leave parts of the model out",
    "panel_check": "check the claims in both halves",
    "panel_errors": "look where the model fails",
    "sensors_clean": "repair readings and take out the normal course",
    "sensors_patterns": "look for common movement",
    "sensors_events": "detect events",
    "sensors_compare": "vary the thresholds",
    "sensors_check": "check the claimed events",
    "sensors_errors": "look where the detector fails",
    "survey_clean": "repair coordinates, units and gaps",
    "survey_patterns": "map the grade",
    "survey_model": "fit trend, hot spots and variogram",
    "survey_folds": "cross-validate in space",
    "survey_compare": "leave parts of the model out",
    "survey_check": "check the claims in parts of the map",
    "survey_errors": "look where the map fails",
    "trial_clean": "read numbers, units, batches and gaps",
    "trial_patterns": "look for common movement and for who is missing",
    "trial_model": "fit markers and their interactions with the arm",
    "trial_subtypes": "look for hidden subtypes",
    "trial_compare": "build the model up part by part",
    "trial_check": "check the claims in both halves",
    "trial_errors": "look where the model fails",
    "table_relations": "look for relations and group differences",
}
"""Every cell with the description of its call."""

_OTHER_NAMES = {
    "sensors": {"model": "sensors_events", "future": "sensors_patterns"},
    "trial": {"future": "trial_subtypes"},
    "survey": {"future": "survey_folds"},
}
_PIECES = ("clean", "patterns", "model", "future", "compare", "check", "errors")
FILES = {
    layout: {piece: _OTHER_NAMES.get(layout, {}).get(piece, f"{layout}_{piece}") for piece in _PIECES}
    for layout in ("panel", "sensors", "trial", "survey")
}
"""The cell of each piece of work, by layout of the table; other layouts have a single cell."""

WORK = {
    "data_lead": ("profile", "clean"),
    "data_engineer": ("clean",),
    "domain_expert": ("clean", "patterns"),
    "ml_engineer": ("clean", "model"),
    "statistician": ("clean", "future"),
    "experimentalist": ("clean", "model", "compare"),
    "eval_lead": ("clean", "check"),
    "validation_analyst": ("clean", "model", "future"),
    "error_analyst": ("clean", "model", "errors"),
    "researcher": ("profile", "clean", "patterns", "model", "compare", "errors", "future", "check"),
}
"""The pieces of work of each role."""

ASKED = {
    "patterns": r"pattern|explor|describ",
    "model": r"model|fit\b|estimat",
    "compare": r"compar|simpler",
    "future": r"forecast|held[- ]out|not fitted",
    "check": r"check|test|confirm",
    "errors": r"errors|fails?\b",
}
"""Patterns of tasks that request a piece of work."""

WHOLE = "answer the questions of the project"
"""The task that requests every piece of work."""

OPTIONAL = frozenset(
    {
        *("profile", "panel_patterns", "sensors_patterns", "panel_compare", "sensors_compare", "panel_errors"),
        *("trial_patterns", "trial_compare", "trial_errors"),
        *("survey_patterns", "survey_compare", "survey_errors"),
    }
)
"""Cells skipped when the pool runs low."""


@dataclass(frozen=True)
class Cell:
    """One call of ``run_code``."""

    title: str
    code: str


def cells_for(agent: str, task: str, layout: str) -> tuple[str, ...]:
    """The names of an agent's cells after ``prepare``, by the printed layout.

    For an unknown role, the words of the `task` select the pieces of work.
    """
    asked = [piece for piece, words in ASKED.items() if re.search(words, task.lower())]
    role = "researcher" if WHOLE in task.lower() else agent
    work = WORK.get(role) or ("clean", *(asked or ["model"]))
    if layout not in FILES:
        return ("profile", "table_relations") if "profile" in work else ("table_relations",)
    return tuple(dict.fromkeys(FILES[layout].get(piece, piece) for piece in work))


def pieces(name: str, given: Mapping[str, Any], fits: Callable[[Cell], bool]) -> list[Cell]:
    """Calls that run one cell, split so that each `fits` a reply; none if a part can't fit.

    Parameters
    ----------
    given
        Variables of the cell, set in its first lines.
    """
    head = "".join(f"{key} = {value!r}\n" for key, value in given.items())
    statements = [*([head] if head else []), *_statements(source(name))]
    whole = Cell(TITLES[name], guarded("".join(statements)))
    if fits(whole):
        return [whole]
    # With the longest possible title, so that the number of parts can't make a part too long.
    parts = _pack(statements, lambda code: fits(Cell(f"{TITLES[name]} (88 of 88)", guarded(code))))
    return [Cell(f"{TITLES[name]} ({i} of {len(parts)})", guarded(part)) for i, part in enumerate(parts, 1)]


def is_finished(cell: Cell, ran: Iterable[str]) -> bool:
    """Whether calls with these titles ran all of a cell, in any number of pieces."""
    name = re.escape(re.sub(r" \(\d+ of \d+\)$", "", cell.title))
    return any(re.fullmatch(rf"{name}(?: \((\d+) of \1\))?", title) for title in ran)


def guarded(code: str) -> str:
    """Code that prints its error instead of raising it, so that odd data cost one line, not a traceback."""
    inner = textwrap.indent(code.strip("\n"), " ")
    return f"try:\n{inner}\nexcept Exception as error:\n print('stopped:', type(error).__name__, str(error)[:200])"


@cache
def source(name: str) -> str:
    """Code of one cell, without the lines for linters."""
    if name == RESTORING:
        # A block can't import from __future__, and needs no docstring.
        tree = ast.parse(files("labmates.tasks").joinpath("restoring.py").read_text(encoding="utf-8"))
        return "\n".join(map(ast.unparse, filter(_is_run, tree.body))) + "\n"
    text = files(f"{__package__}.analysis").joinpath(f"{name}.py").read_text(encoding="utf-8")
    return re.sub(r"\A(?:# (?:ruff|mypy):.*\n)+", "", text)


def _is_run(statement: ast.stmt) -> bool:
    """Whether a statement of a module has an effect in a cell."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module != "__future__"
    return not isinstance(statement, ast.Expr)


def _statements(code: str) -> list[str]:
    """Top-level statements of `code`, each with the comment before it."""
    lines = code.splitlines(keepends=True)
    ends = [node.end_lineno or node.lineno for node in ast.parse(code).body]
    starts = [0, *ends[:-1]]
    return ["".join(lines[a:b]) for a, b in zip(starts, ends, strict=True)]


def _pack(statements: Sequence[str], fits: Callable[[str], bool]) -> list[str]:
    packed: list[str] = []
    for statement in statements:
        if packed and fits(packed[-1] + statement):
            packed[-1] += statement
        elif fits(statement):
            packed.append(statement)
        else:
            return []
    return packed
