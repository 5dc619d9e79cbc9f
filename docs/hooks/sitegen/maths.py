"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network.

Pages write TeX between dollars, ``$x$`` within a line and ``$$x$$`` on lines of its own; code hosts draw these too.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)


def draw_formulas(page: str, where: str) -> str:
    """Return a page's HTML with its formulas as MathML.

    Raises
    ------
    PluginError
        If one is no TeX that can be read; `where` names the page.
    """

    def drawn(found: re.Match[str]) -> str:
        tex = html.unescape(found["tex"]).strip()
        try:
            formula: str = convert(tex, display="block" if found["tag"] == "div" else "inline")
        except Exception as error:
            raise PluginError(f"{where}: the formula '{tex}' can't be read: {error!r}") from error
        # A long formula scrolls by itself, on a phone too, and can be reached by keyboard to do so.
        return f'<div class="formula" tabindex="0">{formula}</div>' if found["tag"] == "div" else formula

    return _FORMULA.sub(drawn, page)
