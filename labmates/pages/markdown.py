"""Models' Markdown as HTML without scripts and external resources.

There are two layers of defence: the parser accepts no HTML and makes no pictures, and an allow-list cleans its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from labmates.pages.rendering import plain

_TAGS = (
    "a blockquote br code dd del dl dt em h1 h2 h3 h4 h5 h6 hr li ol p pre strong sub sup table tbody td th thead tr ul"
)
MOST_CHARS = 60_000
"""Longer texts are shown unparsed: parsing a hostile text takes up to 50 µs per character."""
DEEPEST = 40
"""Deeper nested texts are shown unparsed: the parser would drop a part of them."""
_NO_TABLE = "no table before this line"
_WASTE = 2
"""Maximum ratio of a table's cells to the written ones: short rows of a wide table are filled up."""


def markdown(text: str) -> Markup:
    """Markdown as safe HTML."""
    if len(text) > MOST_CHARS:
        return _unparsed(text)
    parser, env = _parser(), dict[str, Any]()
    tokens = parser.parse(text, env)
    if any(token.level >= DEEPEST - 1 for token in tokens):
        return _unparsed(text)
    cleaned = nh3.clean(
        parser.renderer.render(tokens, parser.options, env),
        tags=set(_TAGS.split()),
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        url_schemes={"http", "https"},
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
    # Again after the parser, which decodes character references (``&#8238;``).
    return Markup(plain(cleaned))  # noqa: S704 - cleaned just now


def _unparsed(text: str) -> Markup:
    return Markup("<pre>{}</pre>").format(plain(text))


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "maxNesting": DEEPEST}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _dense_table, {"alt": ["paragraph", "reference"]})
    parser.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]
    parser.add_render_rule("image", _no_image)
    for level in ("heading_open", "heading_close"):
        parser.add_render_rule(level, _lower_heading)
    return parser


def _dense_table(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Parse a table unless nearly all of its cells would be empty: a few bytes would make thousands."""
    if first < state.env.get(_NO_TABLE, 0) or not table(state, first, end, True):
        return False
    columns = _bars(state, first + 1) + 1
    rows = written = 0
    while first + rows < end and not state.isEmpty(first + rows):
        written += _bars(state, first + rows) + 1
        rows += 1
    if columns * rows > _WASTE * written + columns:
        state.env[_NO_TABLE] = first + rows  # else each of these lines would be tried, with all lines after it
        return False
    return silent or table(state, first, end, False)


def _bars(state: StateBlock, line: int) -> int:
    return state.src.count("|", state.bMarks[line], state.eMarks[line])


def _no_image(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Show a picture's name instead of loading it."""
    token: Any = tokens[index]
    return str(Markup("<em>[picture, not loaded: {}]</em>").format(escape(token.content or token.attrs.get("src", ""))))


def _lower_heading(
    _self: RendererProtocol, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """Move headings below those of the page."""
    token = tokens[index]
    level = min(6, int(token.tag[1]) + 3)
    return f"</h{level}>\n" if token.nesting < 0 else f"<h{level}>"
