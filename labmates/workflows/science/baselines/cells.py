"""The code of baselines: the cells of the task for a role."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from labmates.errors import LabmatesError
from labmates.tasks.analysis import Analysis
from labmates.tasks.registry import TASKS, get_task
from labmates.tasks.schema import findings_fields_text
from labmates.util.python_text import parsed
from labmates.workflows.science.baselines.stated import read_fields

LOOK = "look"
"""The piece of work with a look at every column, the same for all tasks."""

WORK = {
    "data_lead": (LOOK, "clean"),
    "data_engineer": ("clean",),
    "domain_expert": (LOOK, "clean"),
    "ml_engineer": ("clean", "model"),
    "statistician": ("clean", "future"),
    "experimentalist": ("clean", "model", "future"),
    "eval_lead": ("clean", "check"),
    "validation_analyst": ("clean", "model", "future"),
    "error_analyst": ("clean", "model", "check"),
    "researcher": (LOOK, "clean", "model", "future", "check"),
}
"""The pieces of work of each role; `labmates.tasks.analysis.PIECES` says what they are."""

ASKED = {
    "model": r"model|fit\b|estimat",
    "future": r"forecast|held[- ]out|not fitted",
    "check": r"check|test|confirm",
}
"""Patterns of an agent's task that request a piece of work."""

WHOLE = "answer the questions of the project"
"""The task of an agent that requests every piece of work."""


@dataclass(frozen=True)
class Cell:
    """One call of ``run_code``."""

    title: str
    code: str


@cache
def analysis_of(findings: str) -> Analysis | None:
    """The analysis of the task that asks for these findings, as a prompt lists them; None if it ships none."""
    fields = read_fields(findings)
    for name in TASKS.names():
        try:
            task = get_task(name)
        except LabmatesError:  # an unusable plug-in is not the task of this run
            continue
        if task.analysis is not None and fields == read_fields(findings_fields_text(task)):
            return task.analysis
    return None


def work_of(agent: str, task: str, analysis: Analysis) -> list[str]:
    """An agent's pieces of work after ``prepare``; for an unknown role, the words of its `task` select them."""
    asked = [piece for piece, words in ASKED.items() if re.search(words, task.lower())]
    role = "researcher" if WHOLE in task.lower() else agent
    work = WORK.get(role) or ("clean", *(asked or ["model"]))
    return [piece for piece in work if piece == LOOK or piece in analysis.titles]


def look() -> Cell:
    """The cell that looks at every column."""
    text = files(__package__).joinpath("look.py").read_text(encoding="utf-8")
    return Cell("describe every column", guarded(re.sub(r"\A(?:# .*\n)+", "", text)))


def cell_of(analysis: Analysis, piece: str, given: Mapping[str, Any] = MappingProxyType({})) -> Cell:
    """The cell of a piece of work; it sets the variables that are `given` in its first lines."""
    head = "".join(f"{key} = {value!r}\n" for key, value in given.items())
    return Cell(analysis.titles[piece], guarded(head + analysis.code[piece]))


def guarded(code: str) -> str:
    """Code that prints its error instead of raising it, so that odd data cost one line, not a traceback."""
    inner = textwrap.indent(code.strip("\n"), " ")
    return f"try:\n{inner}\nexcept Exception as error:\n print('stopped:', type(error).__name__, str(error)[:200])"


@cache
def restoring() -> Cell:
    """The cell with the functions that restore divided evidence: `labmates.tasks.restoring`."""
    # A block can't import from __future__, and needs no docstring.
    tree = parsed(files("labmates.tasks").joinpath("restoring.py").read_text(encoding="utf-8"))
    return Cell("learn how parts fit together", guarded("\n".join(map(ast.unparse, filter(_is_run, tree.body)))))


def _is_run(statement: ast.stmt) -> bool:
    """Whether a statement of a module has an effect in a cell."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module != "__future__"
    return not isinstance(statement, ast.Expr)
