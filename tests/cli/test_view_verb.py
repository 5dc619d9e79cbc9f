from __future__ import annotations

import http.client
import os
import shlex
import signal
import socket
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

import labmates
from labmates.records.store import Store
from tests.docs.pages import blocks_of
from tests.support.children import Child, command
from tests.support.command_line import Labmates
from tests.support.plugins import ROOT
from tests.support.recorded import a_record, long_run


@pytest.fixture
def store(labmates: Labmates) -> Store:
    made = Store(f"sqlite:///{labmates.folder}/labmates.db")
    made.create(a_record(id="aaaa", study=None, started=1.0))
    made.create(a_record(id="bbbb", key="other", started=2.0))
    return made


def shown() -> list[str]:
    """Return the commands that the page on the viewer begins with."""
    page = ROOT / "docs" / "viewer" / "README.md"
    return [line.partition("#")[0].strip() for line in next(blocks_of(page)).text.splitlines()]


@pytest.mark.parametrize("line", shown())
def test_pages_are_served_at_the_printed_address_until_ctrl_c(labmates: Labmates, store: Store, line: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LABMATES")}
    labmates_, *arguments = shlex.split(line.replace("RUN", "aaaa"))
    assert labmates_ == "labmates"
    with Child(command(*arguments, "--no-browser", "--port", "0"), environment, labmates.folder) as viewer:
        address = urlsplit(viewer.stdout.readline().strip())
        assert (address.hostname, address.path) == ("127.0.0.1", "/runs/aaaa" if "RUN" in line else "/")
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=100)
        connection.request("GET", f"{address.path}?{address.query}")
        answer = connection.getresponse()
        assert answer.status == 303
        answer.read()
        connection.close()
        connection.request("GET", address.path)
        assert connection.getresponse().status == 401
        connection.close()
        viewer.send_signal(signal.SIGINT)
        out, err = viewer.communicate(timeout=100)
    assert viewer.returncode == 0
    assert out == ""
    assert err == "This address gives access to everything in the store. Stop with Ctrl-C.\n"


def test_a_verb_that_reads_runs_says_what_makes_a_store(labmates: Labmates) -> None:
    for verb in (("runs",), ("show", "last"), ("replay", "last"), ("study", "status"), ("view", "--no-browser")):
        done = labmates(*verb)
        assert (done.code, done.out) == (2, "")
        makers = "'labmates run', 'labmates study run' and 'labmates demo' create it"
        assert f"does not exist yet; {makers}" in done.err
    assert not any(labmates.folder.iterdir())


def test_the_store_is_left_as_it_is(labmates: Labmates, store: Store) -> None:
    before = store.run("aaaa")
    assert labmates("view", "--export", "pages").code == 0
    assert store.run("aaaa") == before


def test_runs_are_exported_all_or_some(labmates: Labmates, store: Store) -> None:
    done = labmates("view", "--export", "pages")
    assert done.code == 0
    assert done.out.startswith("2 runs, ")
    assert sorted(path.name for path in (labmates.folder / "pages/runs").iterdir()) == ["aaaa", "bbbb"]
    assert labmates("view", "labmates.db", "bbbb", "--export", "pages").out.startswith("1 runs, ")
    assert [path.name for path in (labmates.folder / "pages/runs").iterdir()] == ["bbbb"]  # the earlier one is replaced
    assert labmates("view", "--export", "newest", "--limit", "1").code == 0
    assert [path.name for path in (labmates.folder / "newest/runs").iterdir()] == ["bbbb"]


def test_an_export_without_events_leads_to_the_story_instead(labmates: Labmates, store: Store) -> None:
    run = long_run(store, 120)
    assert labmates("view", run, "--export", "pages", "--no-events").code == 0
    folder = labmates.folder / "pages/runs" / run
    assert not (folder / "events").exists()
    assert 'href="../../runs/' in (folder / "index.html").read_text()
    assert f'href="../../runs/{run}/story-1.html#e1"' in (folder / "story-1.html").read_text()


@pytest.mark.slow("tests/viewer")
def test_the_sample_store_opens_in_this_version_and_is_exported(labmates: Labmates) -> None:
    done = labmates("view", "--sample", "--export", "pages", "--no-events")
    assert done.code == 0
    assert {path.name.rpartition("-")[0] for path in (labmates.folder / "pages/analyses").iterdir()} == {
        "sample-games",
        "sample-science",
    }
    assert labmates("view", "--sample", "labmates.db").code == 2


def test_a_folder_of_something_else_is_not_touched(labmates: Labmates, store: Store) -> None:
    folder = labmates.folder / "mine"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    done = labmates("view", "--export", "mine")
    assert done.code == 2
    assert "the folder 'mine' is not empty and not an earlier export" in done.err
    assert [path.read_text() for path in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.db", "aaaa"), "the store 'sqlite:///none.db' does not exist yet; 'labmates run', "),
        (("none.db", "--export", "pages"), "the store 'sqlite:///none.db' does not exist yet; "),
        (("none/none.db",), "can't open the store 'sqlite:///none/none.db': there is no folder 'none'"),
        (("postgresql://nobody@127.0.0.1:9/x",), "can't open the store 'postgresql://nobody@127.0.0.1:9/x': "),
        (("zzzz",), "there is no run 'zzzz'"),
        (("labmates.db", "--store", "sqlite:///other.db"), "two stores are given"),
        (("aaaa", "bbbb"), "several go with --export"),
        (("--study", "x"), "--study, --limit and --no-events go with --export"),
        (("--host", "0.0.0.0"), "the viewer listens on this machine alone"),
        (("--port", "70000"), "70000 is not in the range"),
        (("mysql://x/y",), "'mysql'"),
        (("--export", "out", "--study", "none"), "unknown study 'none'"),
        (("--export", "labmates.db"), "labmates.db"),
        (("text.db",), "file is not a database"),
        (("empty.db",), "belongs to another program: it has x, but no runs"),
    ],
)
def test_wrong_input_exits_with_2(labmates: Labmates, store: Store, arguments: tuple[str, ...], said: str) -> None:
    (labmates.folder / "text.db").write_text("a text, and not a short one either" * 100)
    sa.create_engine(f"sqlite:///{labmates.folder}/empty.db").connect().exec_driver_sql("create table x (y)")
    done = labmates("view", *arguments, "--no-browser")
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_a_port_that_is_taken_is_told(labmates: Labmates, store: Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = labmates("view", "--no-browser", "--port", str(port))
    assert done.code == 2
    assert f"can't listen on 127.0.0.1:{port}: Address already in use; give another --port" in done.err


def test_a_store_that_another_program_has_locked_is_told(labmates: Labmates, store: Store) -> None:
    store.close()
    locked = sqlite3.connect(labmates.folder / "labmates.db", isolation_level=None)
    locked.execute("pragma locking_mode=exclusive")
    locked.execute("begin exclusive")
    done = labmates("view", "--no-browser")
    locked.close()
    assert done.code == 2
    assert "can't open the store 'sqlite:///labmates.db': database is locked" in done.err


def test_a_store_of_a_newer_labmates_is_told(labmates: Labmates, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    done = labmates("view", "--no-browser")
    assert done.code == 2
    assert "it was made by a newer labmates" in done.err


def test_all_that_the_pages_need_comes_with_the_package() -> None:
    folder = Path(labmates.__file__).parent
    for name in (
        "pages/templates/base.html",
        "workflows/games/templates/game.html",
        "viewer/static/viewer.css",
        "viewer/static/viewer.js",
    ):
        assert (folder / name).is_file()
