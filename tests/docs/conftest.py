from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.everyone import everyone
from tests.support.openai_server import OpenAIServer
from tests.support.shared import shared_server


@pytest.fixture(scope="session")
def forge() -> Path:
    """The address of the process that commands are forked from."""
    return shared_server("forge", [sys.executable, "-m", "tests.docs.forge"], lambda: os.environ)


@pytest.fixture(scope="session")
def models() -> Iterator[str]:
    """Return the address of the server that answers for all models."""
    with OpenAIServer(everyone()) as server:
        yield server.base_url
