"""Tables in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from labmates.safe_text import clean
from labmates.stats.tables import Column, Table


def latex(table: Table) -> str:
    r"""A table in LaTeX, for the package booktabs.

    What users and models wrote is escaped: no text can be a command.
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
    """Text that LaTeX prints as it stands; the minus of a number becomes a real one."""
    shown = _NEGATIVE.sub("\N{MINUS SIGN}", _HYPHENS.sub("-\0", clean(text)))
    escaped = "".join(_LATEX.get(character, character) for character in shown).replace("\0", "{}")
    return _HAT.sub(r"$\\hat{\1}$", escaped)


def _latex_row(cells: Sequence[str]) -> str:
    # A bracket at the beginning of a row would be read as the length of the row before.
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
