"""Axe finds nothing serious on any kind of page, light or dark, on a desk or a phone; all of it fits a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from labmates.viewer.export import export_pages
from tests.support.axe import SIZES, faults, whole_faults
from tests.support.browser import page_of
from tests.support.recorded import Recorded
from tests.support.site import Site

pytestmark = [pytest.mark.needs("browser"), pytest.mark.xdist_group("viewer")]


@pytest.mark.slow("tests/viewer/test_accessibility.py")
def test_no_page_has_a_serious_fault(browser: Browser, site: Site, recorded: Recorded) -> None:
    ids = recorded.ids
    kinds = [f"/runs/{run}" for name, run in ids.items() if name not in ("repetition", "long")]
    lab = f"/runs/{ids['science']}"
    lists = ["/", "/?kind=dilemma", "/?text=zzz", "/studies", "/compare", "/runs/unknown"]
    paths = [*lists, *kinds, f"{lab}/story", f"{lab}/events/1", f"/compare?a={ids['contract']}&b={ids['repetition']}"]
    paths += [f"{lab}/transcript?agent=data_lead&agent=data_engineer", "/search?search=data", "/search?search=%22"]
    found = {}
    with page_of(browser, site.url) as (page, _):
        for path in paths:
            page.goto(site.url + path)
            if told := faults(page):
                found[path] = told
    assert not found


@pytest.mark.slow("tests/viewer/test_accessibility.py")
def test_no_other_page_is_wider_than_a_phone(browser: Browser, site: Site, recorded: Recorded) -> None:
    found = {}
    with page_of(browser, site.url) as (page, _):
        for name, run in recorded.ids.items():
            if name in ("science", "repetition", "plugin", "long"):  # on the pages above, or without such pages
                continue
            for path in (f"/runs/{run}/story", f"/runs/{run}/events/1", f"/compare?a={run}&b={run}"):
                page.goto(site.url + path)
                found[name, path] = whole_faults(page)
    assert not any(found.values()), found


def test_no_exported_page_has_a_serious_fault(browser: Browser, recorded: Recorded, tmp_path: Path) -> None:
    run = recorded.ids["game"]
    export_pages(recorded.store, tmp_path / "pages", run_ids=[run], events=False)
    with page_of(browser, "", token="") as (page, _):
        for name in ("index.html", f"runs/{run}/index.html", f"runs/{run}/story-1.html"):
            page.goto((tmp_path / "pages" / name).as_uri())
            assert faults(page) == {}, name


def test_a_fault_would_be_found_in_each_theme_and_size(browser: Browser) -> None:
    style = ":root { background: Canvas; color-scheme: light dark } .faint { color: #555 } .pale { color: #ddd }"
    pairs = [f"{theme}, {size}" for size in SIZES for theme in ("light", "dark")]
    known = {
        "<p class=faint>too dark in the dark</p>": (["dark, desk", "dark, phone"], "color-contrast"),
        "<p class=pale>row</p>" * 9: (["light, desk", "light, phone"], "color-contrast"),
        "<ul><li><a href='#'>one</a><li><a href='#'>two</a><li><a href='#'></a></ul>": (pairs[::2], "link-name"),
        "<p id=a>one</p><p id=a>two</p>": (["whole"], "is there twice"),
        "<p style='width: 380px'>wide</p>": (["whole"], "pixels wide on a phone"),
    }
    with page_of(browser, "", token="") as (page, _):
        for markup, (where, said) in known.items():
            page.set_content(f"<html lang=en><title>t</title><style>{style}</style><main><h1>t</h1>{markup}</main>")
            found = faults(page)
            assert list(found) == where, found
            assert all(said in told for [told] in found.values())
