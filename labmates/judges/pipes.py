"""Markdown tables in outputs, rewritten as tables of fixed width, in whose columns numbers end below their names."""

from __future__ import annotations

import re
from collections.abc import Sequence


def align_tables(text: str) -> str:
    """A text with each Markdown table of two or more rows aligned, without its rule."""
    lines: list[str] = []
    table: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.lstrip().startswith("|") and line.rstrip().endswith("|"):
            table.append(line)
            continue
        lines += [*_aligned(table), line]
        table = []
    return "\n".join(lines[:-1])


def _aligned(table: Sequence[str]) -> Sequence[str]:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table]
    head, *rows = [row for row in rows if not all(cell and not cell.strip("-:") for cell in row)] or [[]]
    if not rows or any(len(row) != len(head) for row in rows):
        return table
    columns = zip(["_".join(re.findall(r"\w+", name)) or "-" for name in head], *rows, strict=True)
    cells = [[cell.rjust(max(map(len, column))) for cell in column] for column in columns]
    return ["  ".join(row) for row in zip(*cells, strict=True)]
