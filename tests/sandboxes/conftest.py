"""Back ends and sessions for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from labmates.sandboxes import client, control
from labmates.sandboxes.session import KernelBackend, KernelSandbox
from tests.sandboxes.backends import BACKENDS, make_backend
from tests.support.prepared_kernels import use_prepared_kernels, use_started_kernels


@pytest.fixture(scope="module", autouse=True)
def started_kernels() -> Iterator[None]:
    """Start all kernels as users do."""
    use_started_kernels()
    yield
    use_prepared_kernels()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "table.csv"
    path.write_text("site,count,weight\nA,1,0.1\nB,2,0.30000000000000004\nC,3,\n")
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACKENDS)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[KernelBackend]:
    backend = make_backend(request.param)
    yield backend
    await backend.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(backend: KernelBackend, data: Path) -> KernelSandbox:
    """A session that the tests of a module share; none relies on another one's variables."""
    return await backend.open(data)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits for what will not come."""
    monkeypatch.setattr(client, "PATIENCE", 1)
    monkeypatch.setattr(client, "_GRACE", 0.3)
    monkeypatch.setattr(client, "_LAST_OUTPUT", 0.5)
    monkeypatch.setattr(control, "_ANSWER_SECONDS", 2.0)
