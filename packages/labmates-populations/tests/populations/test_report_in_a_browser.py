"""The report of populations in a browser."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from labmates.records.store import Store
from labmates.reports.report import store_report, write_report
from tests.populations.test_populations_report import populations
from tests.reports.test_report_in_a_browser import Seen, seen
from tests.reports.test_report_in_a_browser import browser as browser

pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def populations_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of real runs of self-play and evolution."""
    folder = tmp_path_factory.mktemp("populations")
    with ThreadPoolExecutor(1) as pool:  # this thread's event loop may be the browser's
        url = pool.submit(populations, folder).result()
    with closing(Store(url, read_only=True)) as store:
        write_report(store_report(store), folder / "report.html")
    return folder / "report.html"


@pytest.mark.slow("packages/labmates-populations/tests/populations/test_populations_report.py")
def test_a_report_of_self_play_and_evolution_opens_so_too(browser: Browser, populations_path: Path) -> None:
    # Curves of self-play and of evolution, and the comparison of models; means are drawn within the page.
    assert seen(browser, populations_path, "phone") == Seen(pictures=3)
