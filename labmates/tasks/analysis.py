"""The analysis that a task ships for baselines: cells of code, and the findings that they print.

A diligent baseline runs the cells of its role in one session, in the order of `PIECES`, and reports the findings that
they print. For a task without cells it reports nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

PIECES: Final = ("prepare", "clean", "model", "future", "check")
"""Pieces of work: learn the layout, repair, estimate, predict, test claims anew."""


@dataclass(frozen=True)
class Analysis:
    """Cells of code for one task.

    The package has a file ``PIECE.py`` for each title. The cells share one session with the data frame ``df`` and what
    `labmates.tasks.analysis_head` imports. A line ``RESULT {…}`` of their output has some of the task's findings, as
    JSON by field; other lines are for readers, with the numbers that support the findings. The cell ``check`` has the
    findings to test in the variable ``claims``, by field, and prints those that hold.

    Attributes
    ----------
    package
        The package with the files, for instance ``"labmates.tasks.ecology.analysis"``; it needs no ``__init__.py``.
    titles
        A short description of each cell, by piece of work; ``prepare`` is required and runs first.
    methods
        The methods in sentences, for papers: repairs first, then the main model, its tests and checks.
    doubt
        What remains doubtful about the findings, as the end of a sentence.
    """

    package: str
    titles: Mapping[str, str]
    methods: tuple[str, ...]
    doubt: str

    @cached_property
    def code(self) -> Mapping[str, str]:
        """The code of each cell, without the lines for linters; the first one begins with the imports of all."""
        code = {piece: _cell(self.package, piece) for piece in self.titles}
        return {**code, PIECES[0]: f"{_cell('labmates.tasks', 'analysis_head')}\n{code[PIECES[0]]}"}

    def ordered(self) -> list[str]:
        """The pieces of work that have a cell, in the order of `PIECES`."""
        return [piece for piece in PIECES if piece in self.titles]


def _cell(package: str, name: str) -> str:
    text = files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")
    return re.sub(r"\A(?:# (?:ruff|mypy):.*\n)+", "", text)


def printed_findings(text: str) -> Iterator[dict[str, Any]]:
    """The findings in the output of cells."""
    for line in re.findall(r"^RESULT (\{.*\})\s*$", text, re.MULTILINE):
        with contextlib.suppress(ValueError):
            yield json.loads(line)


def run_cells(analysis: Analysis, frame: pd.DataFrame, *, goes_on: bool = False) -> tuple[str, dict[str, Any]]:
    """Run all cells in this process; returns their output and the findings, of which later ones replace earlier ones.

    The last cell tests the findings of the others. Raises what the cells raise, unless the run `goes_on`: then the next
    cell follows, as in a sandbox.
    """
    names: dict[str, Any] = {"df": frame}
    found: dict[str, Any] = {}
    printed = io.StringIO()
    for piece in analysis.ordered():
        names["claims"] = dict(found)
        before = len(printed.getvalue())
        fails = contextlib.suppress(Exception) if goes_on else contextlib.nullcontext()
        with contextlib.redirect_stdout(printed), fails:
            exec(compile(analysis.code[piece], f"{piece}.py", "exec"), names)  # noqa: S102 - the task's own code
        for part in printed_findings(printed.getvalue()[before:]):
            found |= part
    return printed.getvalue(), found
