"""Sections of a page, with text, tables, figures or markup."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from labmates.pages.rendering import render
from labmates.pages.svg import tag
from labmates.stats.figures import Drawing, has_figures
from labmates.stats.tables import Table


@dataclass(frozen=True)
class Code:
    """The content of a file, or a command."""

    text: str


Body = str | Table | Drawing | Code
"""Text (`markupsafe.Markup` stays unescaped), a table, a figure or code."""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes
    ----------
    anchor
        The fragment of its address.
    body
        Its content, in order.
    note
        Remark on omitted content and its place.
    """

    anchor: str
    title: str
    body: Body | tuple[Body, ...]
    note: str = ""

    @property
    def bodies(self) -> tuple[Body, ...]:
        """The content as a tuple."""
        return self.body if isinstance(self.body, tuple) else (self.body,)

    def html(self, prefix: str = "") -> Markup:
        """The content as markup; `prefix` keeps its fragments apart from those of another run on the page."""
        return Markup("").join(body_html(body, prefix) for body in self.bodies)


def body_html(body: Body, prefix: str = "") -> Markup:
    """A text, a table, a figure or code as markup; a figure needs the extra ``plots``."""
    if isinstance(body, Markup):
        return body
    if isinstance(body, Table):
        return render("table.html", table=body, prefix=prefix)
    if isinstance(body, str):
        return tag("p", body)
    if isinstance(body, Code):
        return tag("pre", tag("code", body.text), tabindex=0)
    if not has_figures():
        return tag("p", f"{body.title} needs the extra 'plots' (pip install 'labmates[plots]').", class_="quiet")
    picture = body.picture()
    return Markup("") if picture is None else render("figure.html", picture=picture)
