"""Reports in a real browser: nothing leaves the page, nothing complains, everybody can read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import labmates
from labmates.records.store import Store
from tests.reports.test_report import store as store

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs("browser")
LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.support.browser import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def page_path(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labmates.report("pilot", out=tmp_path_factory.mktemp("page") / "report.html", store=store.url)


@pytest.mark.parametrize(
    "look",
    [
        "phone",
        *(
            pytest.param(look, marks=pytest.mark.slow("tests/reports/test_report_in_a_browser.py"))
            for look in ("desktop", "dark")
        ),
    ],
)
def test_a_report_opens_without_requests_errors_or_serious_findings(
    browser: Browser, page_path: Path, look: str
) -> None:
    assert seen(browser, page_path, look) == Seen(pictures=0)


@dataclass(frozen=True)
class Seen:
    """What a page is like; without a fault, but for the number of its pictures."""

    pictures: int
    asked: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    shown: bool = True
    fits: bool = True
    styled: bool = True
    serious: tuple[tuple[str, str], ...] = ()


def seen(browser: Browser, page_path: Path, look: str) -> Seen:
    """Open a page, and tell what it asks for beside itself, what it complains of, and what axe finds."""
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(page_path.as_uri())
    found = Axe().run(page).response["violations"]
    told = Seen(
        pictures=page.evaluate("document.images.length"),
        asked=tuple(url for url in asked if url != page_path.as_uri() and not url.startswith("data:")),
        said=tuple(said),
        shown=page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 100)"),
        fits=page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"),
        styled=page.evaluate("getComputedStyle(document.body).maxWidth") != "none",
        serious=tuple((one["id"], one["impact"]) for one in found if one["impact"] in ("serious", "critical")),
    )
    context.close()
    return told


def test_a_report_can_be_printed_and_read_by_its_structure(browser: Browser, page_path: Path) -> None:
    page = browser.new_page()
    page.goto(page_path.as_uri())
    page.emulate_media(media="print")
    assert not page.get_by_role("navigation").is_visible()
    assert page.pdf().startswith(b"%PDF")
    page.emulate_media(media="screen")
    levels = [int(one.evaluate("one => one.tagName[1]")) for one in page.locator("h1, h2, h3").all()]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    tables = page.get_by_role("table").all()
    assert tables
    for table in tables:
        assert table.locator("caption").inner_text()
        assert table.locator("th[scope=col]").count() > 1
    for link in page.get_by_role("navigation").get_by_role("link").all():
        target = link.get_attribute("href")
        assert target is not None
        assert page.locator(f'[id="{target[1:]}"]').count() == 1
    page.close()
