"""Templates, and formats of times, money and numbers in them. Everything is escaped except markup."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from labmates._version import __version__
from labmates.budgets.money import parse_dollars, show_dollars

_INVISIBLE = {
    code: "\N{REPLACEMENT CHARACTER}"
    for span in (
        (0x00, 0x09),
        (0x0B, 0x20),
        (0x7F, 0xA0),
        (0xAD, 0xAE),
        (0x061C, 0x061D),
        (0x115F, 0x1161),
        (0x180E, 0x180F),
        (0x200B, 0x200C),
        (0x200E, 0x2010),
        (0x2028, 0x202F),
        (0x2060, 0x2070),
        (0x3164, 0x3165),
        (0xD800, 0xE000),
        (0xFEFF, 0xFF00),
        (0xFFA0, 0xFFA1),
        (0xFFF9, 0xFFFC),
        (0xE0000, 0xE0080),
    )
    for code in range(*span)
}
"""Invisible characters, characters that reorder text, and lone surrogates, so that readers see the actual text. Joiners
stay, since scripts and emoji need them."""


def render(template: str, **values: Any) -> Markup:
    """A template filled with values."""
    return Markup(environment().get_template(template).render(**values))  # noqa: S704 - templates escape


@cache
def environment() -> Environment:
    """The templates' environment."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader("labmates.pages"), FunctionLoader(_of_package)]),
        autoescape=True,
        finalize=_plain_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "brief": brief,
        "compact": compact,
        "count": count,
        "cut": cut,
        "dollars": dollars,
        "duration": duration,
        "number": number,
        "moment": moment,
        "iso": iso,
        "pretty": pretty,
        "spaced": spaced,
        "fragment": fragment,
        "explained": explained,
    }
    made.globals |= {"version": __version__, "words": dict}
    return made


def explain(words: Callable[[], Mapping[str, str]]) -> None:
    """Let the headings of tables link to their meanings, which are written under each table."""
    environment().globals["words"] = words


_HEADING = re.compile(r'(<th scope="col"[^>]*>)([^<]+)(?=</th>| <span)')
_SORTED = re.compile(r'(<th scope="col"[^>]*><a href="[^"]*">([^<]+)(?: <span[^>]*>.</span>)?</a>)(?=</th>)')


def explained(page: Markup) -> Markup:
    """A page whose headings of columns link to their meanings, which are written at its end."""
    words: Any = environment().globals["words"]
    meanings, told = words(), dict[str, str]()

    def link(word: str, shown: str, otherwise: str, label: str = "") -> str:
        meaning = meanings.get(word) or meanings.get(word[:1].lower() + word[1:])
        if not meaning:
            return otherwise
        told[word] = meaning
        return f'<a class="word" href="#word-{fragment(word)}"{label}>{shown}</a>'

    def linked(heading: re.Match[str]) -> str:
        return heading[1] + link(unescape(heading[2]), heading[2], heading[2])

    def with_link(heading: re.Match[str]) -> str:
        return heading[1] + " " + link(unescape(heading[2]), "?", "", f' aria-label="Meaning of {heading[2]}"')

    text = _SORTED.sub(with_link, _HEADING.sub(linked, page))
    return Markup(text) + (render("words.html", place="word", meanings=told) if told else "")  # noqa: S704 - a page


def templates_of(package: str | None) -> Callable[..., Markup]:
    """A function like `render` for the templates in a package's folder ``templates``, and the shared ones."""
    return lambda template, **values: render(f"{package}:{template}", **values)


def _of_package(name: str) -> str | None:
    """The text of the template ``package:name``, or of the shared one; None if missing."""
    package, colon, file = name.partition(":")
    for home in (package, "labmates.pages") if colon else ():
        template = files(home).joinpath("templates", file)
        if template.is_file():
            return template.read_text("utf-8")
    return None


def _plain_text(value: object) -> object:
    """A value for a template; every text passes through `plain`."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


_hide: ContextVar[Callable[[str], str]] = ContextVar("hide", default=str)


@contextmanager
def hiding(hide: Callable[[str], str]) -> Iterator[None]:
    """Pass every text of the pages rendered in this context through `hide`, such as a redactor of secrets."""
    token = _hide.set(hide)
    try:
        yield
    finally:
        _hide.reset(token)


def plain(text: object) -> str:
    """Text without invisible and reordering characters."""
    return _hide.get()(str(text)).replace("\r\n", "\n").translate(_INVISIBLE)


def count(value: float) -> str:
    """A whole number with separators."""
    return f"{value:,.0f}"


def number(value: object, *, whole: bool = True) -> str:
    """A number without needless digits; other values as text.

    Parameters
    ----------
    whole
        Whether whole numbers are without decimals; not in columns where others have some.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else plain(value)
    if isinstance(value, int) or (whole and value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.2g}"


def brief(value: object) -> str:
    """A number in its shortest form; other values as text."""
    return f"{value:g}" if isinstance(value, float) else number(value)


def cut(text: str, most: int) -> str:
    """At most `most` characters of a text, with an ellipsis if cut."""
    return text if len(text) <= most else f"{text[:most]} …"


def compact(value: object) -> str:
    """JSON data on one line."""
    return plain(json.dumps(value, ensure_ascii=False, default=repr))


def dollars(value: int | str) -> str:
    """Micro-dollars, or dollars as a decimal text, in display form."""
    return show_dollars(value if isinstance(value, int) else parse_dollars(value))


def duration(seconds: float) -> str:
    """A duration in display form."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def moment(at: float) -> str:
    """A Unix time as date and time, UTC."""
    return time.strftime("%Y-%m-%d %H:%M", _utc(at)) if at else "–"


def iso(at: float) -> str:
    """A Unix time in ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", _utc(at))


def pretty(value: object) -> str:
    """JSON data as indented text."""
    return plain(json.dumps(value, indent=2, ensure_ascii=False, default=repr))


def spaced(name: str) -> str:
    """A name without underscores."""
    return name.replace("_", " ")


def fragment(text: str) -> str:
    """A text as part of a fragment of an address."""
    return re.sub(r"\W+", "-", text).strip("-")


def _utc(at: float) -> time.struct_time:
    try:
        return time.gmtime(at)
    except (OverflowError, OSError, ValueError):
        return time.gmtime(0)


def as_text(value: object) -> str:
    """A body, or a part of one, as text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    return plain(json.dumps(value, ensure_ascii=False, indent=1, default=repr))
