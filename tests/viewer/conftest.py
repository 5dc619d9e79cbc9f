"""A store with a real run of each kind, made once; the viewer on it; and a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.browser import chromium
from tests.support.recorded import Recorded
from tests.support.site import Site, served


@pytest.fixture(scope="session")
def site(recorded: Recorded) -> Iterator[Site]:
    """The viewer of that store."""
    with served(recorded.store, once="good-once") as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module: while it is open, no others could run an event loop."""
    with chromium() as opened:
        yield opened
