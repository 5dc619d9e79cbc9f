from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.everyone import everyone
from tests.support.openai_server import OpenAIServer
from tests.support.plugins import ROOT

START_SECONDS = 400
"""It imports the whole package, which takes seven seconds of a processor, and a busy machine gives few."""


@pytest.fixture(scope="session")
def forge() -> Iterator[Path]:
    """Return the address of the process that commands are forked from."""
    folder = Path(tempfile.mkdtemp(prefix="labmates-docs-"))  # not pytest's: the path of a socket must be short
    address = folder / "forge"
    with subprocess.Popen([sys.executable, "-m", "tests.docs.forge", str(address)], cwd=ROOT) as process:
        try:
            end = time.monotonic() + START_SECONDS
            while not address.exists():
                assert process.poll() is None
                assert time.monotonic() < end, "what commands are forked from did not start"
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def models() -> Iterator[str]:
    """Return the address of the server that answers for all models."""
    with OpenAIServer(everyone()) as server:
        yield server.base_url
