"""Axe finds nothing serious on any kind of page, light or dark, on a desk or a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.support.browser import page_of
from tests.support.recorded import Recorded
from tests.support.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.needs("browser"), pytest.mark.xdist_group("viewer")]

SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 800}}


# Contrast depends on the theme alone, and what is cut off on the size alone: two of four pairs find what there is.
@pytest.mark.parametrize(("theme", "size"), [("light", "desk"), ("dark", "phone")])
def test_no_page_has_a_serious_fault(browser: Browser, site: Site, recorded: Recorded, theme: str, size: str) -> None:
    ids = recorded.ids
    kinds = [f"/runs/{run}" for name, run in ids.items() if name not in ("repetition", "long")]
    lab = f"/runs/{ids['science']}"
    lists = ["/", "/?kind=dilemma", "/?text=zzz", "/studies", "/compare", "/runs/unknown"]
    paths = [*lists, *kinds, f"{lab}/story", f"{lab}/events/1", f"/compare?a={ids['contract']}&b={ids['repetition']}"]
    found = {}
    with page_of(browser, site.url, color_scheme=theme, viewport=SIZES[size]) as (page, _):
        for path in paths:
            page.goto(site.url + path)
            page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            results = Axe().run(page)
            bad = [one for one in results.response["violations"] if one["impact"] in ("serious", "critical")]
            if bad:
                found[path] = [(one["id"], one["help"], one["nodes"][0]["html"][:200]) for one in bad]
    assert not found
