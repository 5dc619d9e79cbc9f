"""Markdown that a model wrote, as HTML in which nothing runs and which loads nothing.

Two fences, one behind the other: the parser takes no HTML and makes no pictures, and what comes out of it is cleaned
by an allow-list.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

_TAGS = (
    "a blockquote br code dd del dl dt em h1 h2 h3 h4 h5 h6 hr li ol p pre strong sub sup table tbody td th thead tr ul"
)
MOST_CHARS = 400_000
"""A longer text is shown as it is: nobody reads it, and it would take long to parse."""


def markdown(text: str) -> Markup:
    """Return Markdown as safe HTML."""
    if len(text) > MOST_CHARS:
        return Markup("<pre>{}</pre>").format(text)
    cleaned = nh3.clean(
        _parser().render(text),
        tags=set(_TAGS.split()),
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
    return Markup(cleaned)  # noqa: S704 - cleaned just now


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_web  # type: ignore[method-assign]
    parser.add_render_rule("image", _no_image)
    for level in ("heading_open", "heading_close"):
        parser.add_render_rule(level, _lower_heading)
    return parser


def _is_web(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _no_image(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Name a picture in the place of loading it."""
    token: Any = tokens[index]
    return str(Markup("<em>[picture, not loaded: {}]</em>").format(escape(token.content or token.attrs.get("src", ""))))


def _lower_heading(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Put headings below those of the page."""
    token = tokens[index]
    level = min(6, int(token.tag[1]) + 3)
    return f"</h{level}>\n" if token.nesting < 0 else f"<h{level}>"
