"""Reports as a self-contained HTML page without scripts, and as PDF."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from markupsafe import Markup

from labmates.errors import UsageError
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


_BROWSERS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_SECONDS: Final = 180


def find_browser() -> str:
    """The path of a browser that can print. Raises `UsageError` if none is installed."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise UsageError(
            "--pdf: neither Chromium nor Chrome is installed (looked for "
            f"{', '.join(name for name in _BROWSERS if '/' not in name)}); open the page in any browser and print it"
        )
    return browser


def print_page(page: Path, pdf: Path, browser: str) -> None:
    """Print a page to a PDF, which is replaced once the new one is complete.

    Raises `UsageError` if the browser fails or the file can't be written.
    """
    # Chromium's sandbox refuses root. The page of a report has no scripts and loads nothing.
    as_root = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with TemporaryDirectory(prefix="labmates-print-") as folder:
        part = Path(folder) / "page.pdf"
        options = [
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}",
        ]
        command = [browser, *as_root, *options, f"--print-to-pdf={part}", page.resolve().as_uri()]
        try:
            done = subprocess.run(  # noqa: S603 - a browser, and a page of ours
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UsageError(f"--pdf: {browser} failed: {error}") from error
        if not part.is_file():
            reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise UsageError(f"--pdf: {browser} printed nothing: {reason[0][:300]}")
        try:
            shutil.move(part, pdf)
        except OSError as error:
            raise UsageError(f"--pdf: can't write '{pdf}': {error.strerror}") from error
