"""The site of documentation builds without a warning, asks no other host, and can be used by everybody."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.plugins import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("site")  # one worker builds it
whole = pytest.mark.slow("tests/docs/test_reference.py")
LOOKED_AT = ("index", "tutorial", "reference/conditions/science", "explanations/ratings", "reference/commands/study")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    mkdocs = Path(sys.executable).with_name("mkdocs")
    command = [str(mkdocs), "build", "--strict", "--config-file", str(config), "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=550, check=False)


@whole
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    elsewhere = r"""=["']?(?:https?:)?//"""
    loads = re.compile(rf"(?:src|srcset|data|action){elsewhere}|<link[^>]+href{elsewhere}|@import|url\((?:https?:)?//")
    for file in (*site.rglob("*.html"), *site.rglob("*.css")):
        found = loads.search(file.read_text(encoding="utf-8"))
        assert found is None, f"{file}: {found}"


@whole
def test_formulas_are_drawn_without_a_script(site: Path) -> None:
    page = (site / "explanations" / "ratings.html").read_text(encoding="utf-8")
    assert page.count("<math") >= 8
    assert "arithmatex" not in page
    for file in site.rglob("*.html"):
        assert "$$" not in re.sub(r"<(code|pre)\b.*?</\1>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_a_page_that_stands_nowhere_in_the_navigation_is_an_error(tmp_path: Path) -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "index.md").write_text("# Home\n")
    (folder / "forgotten.md").write_text("# Forgotten\n[nowhere](nowhere.md)\n")
    validation = config[config.index("validation:") : config.index("# A new page")]
    small = tmp_path / "mkdocs.yml"
    small.write_text(f"site_name: small\n{validation}\nnav: [index.md]\n")
    done = build(small, tmp_path / "site")
    assert done.returncode != 0
    assert "forgotten.md" in done.stderr
    assert "nowhere.md" in done.stderr


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return Debian's Chromium."""
    from tests.support.browser import chromium

    with chromium() as opened:
        yield opened


def opened(browser: Browser, site: Path, page: str, **options: Any) -> tuple[Page, list[str]]:
    """Open a page from its file and return it with the addresses elsewhere that it asked for."""
    tab = browser.new_context(**options).new_page()
    asked: list[str] = []
    tab.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else asked.append(request.url))
    tab.goto((site / f"{page}.html").as_uri())
    tab.wait_for_selector("html.js")
    return tab, asked


@whole
@pytest.mark.needs("browser")
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("deviation rating", "explanations/ratings"),
        ("architecture", "explanations/design"),
        ("csv task", "howto/new-task"),
        ("budget", "explanations/budgets"),
        ("resume", "studies/index"),
    ],
)
def test_search_finds_the_page_first_from_files_and_asks_nobody(
    browser: Browser, site: Path, words: str, page: str
) -> None:
    tab, asked = opened(browser, site, "reference/settings")
    tab.click("input.md-search__input")
    tab.wait_for_selector("iframe[title=search]", state="attached")
    tab.keyboard.type(words)
    tab.wait_for_selector(f".md-search-result__item:first-child .md-search-result__link[href*='{page}.html']")
    assert asked == []
    tab.context.close()


@whole
@pytest.mark.needs("browser")
def test_pages_have_no_serious_fault_of_accessibility_and_fit_a_phone(browser: Browser, site: Path) -> None:
    from tests.support.axe import faults

    found = {}
    for page in LOOKED_AT:
        tab, _ = opened(browser, site, page, reduced_motion="reduce")
        found[page] = faults(tab)
        tab.context.close()
    assert not any(found.values()), found
