"""Sections of a page, with text, tables, figures or markup."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from labmates.pages.rendering import render
from labmates.stats.figures import Drawing, has_figures
from labmates.stats.tables import Table

Body = str | Table | Drawing
"""Text (`markupsafe.Markup` stays unescaped), a table or a figure."""


@dataclass(frozen=True)
class Section:
    """A part of a run's overview page.

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
    def html(self) -> Markup:
        """The content as markup."""
        bodies = self.body if isinstance(self.body, tuple) else (self.body,)
        return Markup("").join(map(body_html, bodies))


def body_html(body: Body) -> Markup:
    """A text, a table or a figure as markup; a figure needs the extra ``plots``."""
    if isinstance(body, Markup):
        return body
    if isinstance(body, Table):
        return render("table.html", table=body)
    if isinstance(body, str):
        return Markup("<p>{}</p>").format(body)
    if not has_figures():
        return Markup("<p class=quiet>{} needs the extra 'plots'.</p>").format(body.title)
    picture = body.picture()
    return Markup("") if picture is None else render("figure.html", picture=picture)
