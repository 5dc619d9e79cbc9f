"""The page: one file that loads nothing and runs nothing, whatever models have written."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from labmates.models.redact import MASK, Redactor
from labmates.reports.parts import Report
from labmates.safe_text import clean

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"(?<=[?&])((?:api[-_]?key|key|token|secret|password)=)[^&\s'\"]+", re.IGNORECASE)


def render(report: Report) -> str:
    """Return a report as a page.

    Every text is escaped, control characters are taken out, and so is whatever looks like a key or is one of this
    process's environment. A content security policy allows this page's own style sheet and pictures alone.
    """
    redact = Redactor.from_environment(os.environ)

    def shown(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return _QUERY.sub(rf"\1{MASK}", _USER.sub(f"{MASK}@", redact(clean(value))))

    folder = files("labmates.reports")
    style = (folder / "page.css").read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        autoescape=True, finalize=shown, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    template = environment.from_string((folder / "page.html").read_text("utf-8"))
    return template.render(report=report, style=Markup(style), digest=Markup(digest), picture=Markup)  # noqa: S704
