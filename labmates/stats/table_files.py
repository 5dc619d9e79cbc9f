"""Export of tables: CSV, Parquet, JSON and LaTeX."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from labmates.errors import MissingExtraError, UsageError, telling
from labmates.stats.tables import Column, Table
from labmates.util.csv_rows import inert
from labmates.util.safe_text import clean

FORMATS: Final = (".csv", ".parquet", ".tex", ".json")
_ONE_TABLE: Final = (".csv", ".parquet")


def latex(table: Table) -> str:
    r"""A table in LaTeX, for the package booktabs.

    Texts of users and models are escaped, so none can be a command.
    """
    sides = "".join("r" if number else "l" for number in table.sides())
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{re.sub('[^a-zA-Z0-9]+', '-', table.name)}}}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        *_groups(table.columns),
        _latex_row([column.title for column in table.columns]),
        r"\midrule",
    ]
    begins = [place for place, column in enumerate(table.columns) if column.once][:1]
    for number, cells in enumerate(table.cells()):
        if number and any(cells[place] for place in begins):
            lines.append(r"\addlinespace")
        lines.append(_latex_row(cells))
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        lines.append(rf"\par\smallskip\footnotesize {escape_latex(' '.join(table.notes))}")
    return "\n".join([*lines, r"\end{table}", ""])


_GREEK: Final = (
    "alpha beta gamma delta varepsilon theta kappa lambda mu nu pi rho sigma tau varphi chi psi omega",
    "αβγδεθκλμνπρστφχψω",
)
_LATEX: Final = {
    **{character: "\\" + character for character in "&%$#_{}"},
    **{letter: rf"$\{name}$" for name, letter in zip(_GREEK[0].split(), _GREEK[1], strict=True)},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': '{"}',
    "\n": " ",
    "\t": " ",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{HORIZONTAL ELLIPSIS}": r"\dots{}",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{SQUARE ROOT}": r"$\surd$",
    "\N{SUPERSCRIPT TWO}": "$^2$",
    "\N{DAGGER}": r"$^{\dagger}$",
    "\N{DOUBLE DAGGER}": r"$^{\ddagger}$",
}
_HYPHENS = re.compile("-(?=-)")
_NEGATIVE = re.compile(r"(?<![\w.}-])-(?=[\d.])")
_HAT = re.compile(r"\$(\\\w+)\$\N{COMBINING CIRCUMFLEX ACCENT}")


def escape_latex(text: str) -> str:
    """Text that LaTeX prints literally; the hyphen of a negative number becomes a minus sign."""
    shown = _NEGATIVE.sub("\N{MINUS SIGN}", _HYPHENS.sub("-\0", clean(text)))
    escaped = "".join(_LATEX.get(character, character) for character in shown).replace("\0", "{}")
    return _HAT.sub(r"$\\hat{\1}$", escaped)


def _latex_row(cells: Sequence[str]) -> str:
    # LaTeX would read a bracket at the start of a row as the length of the previous row's break.
    return " & ".join(f"{{{cell}}}" if cell.startswith("[") else cell for cell in map(escape_latex, cells)) + r" \\"


def _groups(columns: Sequence[Column]) -> Iterator[str]:
    if not any(column.group for column in columns):
        return
    cells, rules, place = [], [], 0
    while place < len(columns):
        group, start = columns[place].group, place
        while place < len(columns) and columns[place].group == group:
            place += 1
        if group:
            cells.append(rf"\multicolumn{{{place - start}}}{{c}}{{{escape_latex(group)}}}")
            rules.append(rf"\cmidrule(lr){{{start + 1}-{place}}}")
        else:
            cells += [""] * (place - start)
    yield " & ".join(cells) + r" \\"
    yield " ".join(rules)


def check_table(path: Path) -> None:
    """Check, before the rows exist, that a table can be written to a file.

    Raises `UsageError` if the ending is not in `FORMATS`, the folder can't be made, or pyarrow is missing for Parquet.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"a table's file ends in {', '.join(FORMATS)}, not '{path.name}'")
    if ending == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtraError("a table as Parquet", "parquet") from error
    with telling(f"can't write a table to '{path}'"):
        path.parent.mkdir(parents=True, exist_ok=True)


def write_tables(tables: Sequence[Table], path: Path) -> list[Path]:
    """Write tables to a file in the format of its ending, and return the files.

    An existing file is replaced. CSV and Parquet hold one table each, so several tables get files of their own, named
    before the ending (``out.csv``: ``out-actions.csv`` and so on). Raises `UsageError` as `check_table` does, or if the
    file can't be written.
    """
    check_table(path)
    ending = path.suffix.lower()
    if ending in _ONE_TABLE and len(tables) != 1:
        return [file for each in tables for file in write_tables([each], path.with_stem(f"{path.stem}-{each.name}"))]
    with telling(f"can't write a table to '{path}'"):
        if ending == ".parquet":
            tables[0].frame().to_parquet(path, index=False)
        else:
            path.write_text("\n".join(map(_TEXTS[ending], tables)) if ending != ".json" else _json(tables), "utf-8")
    return [path]


def csv_text(table: Table) -> str:
    """All values of a table as CSV; missing values are empty."""
    file = io.StringIO()
    writer = csv.DictWriter(file, table.keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: inert(cell) for name, cell in row.items()} for row in table.rows)
    return file.getvalue()


def _json(tables: Sequence[Table]) -> str:
    return json.dumps([table.as_json() for table in tables], indent=1, ensure_ascii=False, allow_nan=False) + "\n"


_TEXTS: Final[dict[str, Callable[[Table], str]]] = {".csv": csv_text, ".tex": latex}
