"""Reports in a real browser: nothing leaves the page, nothing complains, everybody can read it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import labmates
from labmates.records.store import Store
from labmates.reports.report import store_report, write_report
from tests.reports.test_populations_report import populations
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
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_path(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labmates.report("pilot", out=tmp_path_factory.mktemp("page") / "report.html", store=store.url)


@pytest.fixture(scope="module")
def populations_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of real runs of self-play and evolution."""
    folder = tmp_path_factory.mktemp("populations")
    with ThreadPoolExecutor(1) as pool:  # this thread's event loop may be the browser's
        url = pool.submit(populations, folder).result()
    with closing(Store(url, read_only=True)) as store:
        write_report(store_report(store), folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("look", LOOKS)
def test_a_report_opens_without_requests_errors_or_serious_findings(
    browser: Browser, page_path: Path, look: str
) -> None:
    opens_well(browser, page_path, look, pictures=3)


def test_a_report_of_self_play_and_evolution_opens_so_too(browser: Browser, populations_path: Path) -> None:
    # Three metrics of self-play by model and condition, its curves, and the one condition of evolution.
    opens_well(browser, populations_path, "phone", pictures=5)


def opens_well(browser: Browser, page_path: Path, look: str, *, pictures: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(page_path.as_uri())
    assert [url for url in asked if not url.startswith("data:")] == [page_path.as_uri()]
    assert said == []
    # Pictures are shown, and the page is as wide as the screen.
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 100)")
    assert page.evaluate("document.images.length") == pictures
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("getComputedStyle(document.body).maxWidth") != "none"
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["impact"]) for one in found if one["impact"] in ("serious", "critical")] == []
    context.close()


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
