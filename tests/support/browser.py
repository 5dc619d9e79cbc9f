"""Debian's Chromium, driven by Playwright, with a record of every request that a page makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.site import TOKEN

expect.set_options(timeout=30_000)


@dataclass
class Seen:
    """What a page has done: addresses that it asked for, and what it complained of."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser. While it is open, no event loop can run in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def page_of(browser: Browser, url: str, *, token: str = TOKEN, **options: Any) -> Iterator[tuple[Page, Seen]]:
    """Open a page in a context of its own, let in by the token."""
    context = browser.new_context(**options)
    context.set_default_timeout(30_000)
    page, seen = context.new_page(), Seen()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
    if token:
        context.request.get(f"{url}/?token={token}", max_redirects=0)  # its cookie is the context's
    try:
        yield page, seen
    finally:
        context.close()
