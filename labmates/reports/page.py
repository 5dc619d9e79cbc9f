"""Reports as a self-contained HTML page without scripts."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from labmates.models.redact import MASK, Redactor
from labmates.pages.rendering import hiding
from labmates.pages.rendering import render as render_template
from labmates.pages.section import Section
from labmates.util.safe_text import clean

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"(?<=[?&])((?:api[-_]?key|key|token|secret|password)=)[^&\s'\"]+", re.IGNORECASE)


@dataclass(frozen=True)
class Report:
    """The content of a report on runs.

    `facts` are the first numbers, each with its label; `warnings` come before everything else.
    """

    title: str
    description: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    parts: tuple[Section, ...]


def render(report: Report) -> str:
    """A report as a page.

    Texts are escaped and stripped of control characters, of everything that looks like a key, and of keys in this
    process's environment. A content security policy allows only this page's style sheet and pictures.
    """
    style = (files("labmates.reports") / "page.css").read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    with hiding_secrets():
        page = render_template("report.html", report=report, style=Markup(style), digest=Markup(digest))  # noqa: S704
    return str(page)


def hiding_secrets() -> AbstractContextManager[None]:
    """Hide everything that looks like a key, and keys in this process's environment, in texts of pages."""
    redact = Redactor.from_environment(os.environ)
    return hiding(lambda text: _QUERY.sub(rf"\1{MASK}", _USER.sub(f"{MASK}@", redact(clean(text)))))
