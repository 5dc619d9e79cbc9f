"""A page as PDF, printed by a browser of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from labmates.errors import UsageError

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
    """The path of a browser that can print.

    Raises
    ------
    UsageError
        If none is installed.
    """
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise UsageError(
            "--pdf: neither Chromium nor Chrome is installed (looked for "
            f"{', '.join(name for name in _BROWSERS if '/' not in name)}); open the page in any browser and print it"
        )
    return browser


def print_page(page: Path, pdf: Path, browser: str) -> None:
    """Print a page to a PDF, which is replaced once the new one is complete.

    Raises
    ------
    UsageError
        If the browser fails or the file can't be written.
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
            said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise UsageError(f"--pdf: {browser} printed nothing: {said[0][:300]}")
        try:
            shutil.move(part, pdf)
        except OSError as error:
            raise UsageError(f"--pdf: can't write '{pdf}': {error.strerror}") from error
