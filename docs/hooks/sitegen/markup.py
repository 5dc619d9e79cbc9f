"""Pieces of Markdown, safe for whatever text stands in them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

from griffe import Docstring, DocstringSectionKind, Parser

_COMMENTED = re.compile(r"^    (\w+): [^#\n]*  # (.+)$", re.MULTILINE)
_BELOW_COMMENT = re.compile(r"^((?:    # .+\n)+)    (\w+): ", re.MULTILINE)


def cell(text: str) -> str:
    """Return a text for one cell of a table: on one line, with nothing that Markdown or HTML would take for its own."""
    one_line = " ".join(text.split())
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("$", "&#36;"), ("[", "&#91;")):
        one_line = one_line.replace(mark, entity)
    return one_line.replace("*", "\\*").replace("``", "`")


def code(text: str) -> str:
    """Return a text as code that may stand in a cell of a table."""
    escaped = (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace("[", "&#91;")
        .replace("|", "&#124;")
        .replace("$", "&#36;")
    )
    return f"<code>{escaped}</code>"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [f"| {' | '.join(headers)} |", f"|{' --- |' * len(headers)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def fence(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.strip()}\n```\n"


def read_docstring(documented: type) -> tuple[str, dict[str, str]]:
    """Return the text of a class's docstring, and the description of each attribute.

    A description is in the docstring (``a, b`` stands for both), in a comment after the attribute's annotation or above
    it, or in the docstring of a property.
    """
    sections = Docstring(inspect.getdoc(documented) or "", parser=Parser.numpy).parse(warnings=False)
    text = "\n\n".join(str(part.value) for part in sections if part.kind is DocstringSectionKind.text)
    source = inspect.getsource(documented)
    found = {name: inspect.getdoc(each) or "" for name, each in vars(documented).items() if isinstance(each, property)}
    found |= {
        name: comment.replace("    # ", "").replace("\n", " ") for comment, name in _BELOW_COMMENT.findall(source)
    }
    found |= dict(_COMMENTED.findall(source))
    for part in sections:
        if part.kind is DocstringSectionKind.attributes:
            for attribute in part.value:
                found |= {name.strip(): attribute.description for name in attribute.name.split(",")}
    return text, found
