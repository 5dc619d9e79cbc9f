from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from labmates.cli.view import store_and_runs
from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.database import _OPENING_SECONDS, StoreError
from labmates.records.events import ChargeEvent, Event, LLMCallEvent, PhaseEvent, ScoreEvent
from labmates.records.recorder import Recorder
from labmates.records.run import RunRecord, Usage, new_run_id
from labmates.records.steps import Writer
from labmates.records.store import Store
from labmates.records.view import run_json
from tests.studies.ended import fresh_run


def a_run(**changes: object) -> RunRecord:
    run = RunRecord(
        id=new_run_id(),
        kind="science",
        key="k",
        replicate=0,
        seed=7,
        condition={"task": "ecology", "budget": "0.5"},
        models=["scripted:diligent"],
        started=1.0,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def some_events() -> list[Event]:
    return [
        PhaseEvent(step="data/0/phase", team="data", status="started", number=0),
        LLMCallEvent(
            step="data/0/data_lead/plan/0",
            team="data",
            agent="data_lead",
            model="m",
            messages=[1],
            reply=1,
            finish="stop",
            faults=["cut"],
            input_tokens=10,
            output_tokens=5,
            seed=3,
        ),
        ChargeEvent(step="data/0/data_lead/plan/0", team="data", agent="data_lead", amount=20),
        ScoreEvent(judge="verified", version="1", metric="accuracy", value=None, reason="no block", details={"a": [1]}),
    ]


async def test_a_run_comes_back_whole_with_events_and_bodies(store: Store) -> None:
    run = a_run()
    store.create(run)
    recorder = Recorder(Writer(store), run)
    number = recorder.bodies.keep({"role": "user", "content": "hello"})
    recorder.emit(*some_events())
    ended = replace(run, status="completed", metrics={"accuracy": 0.5}, usage=recorder.usage(), seconds=1.5)
    finished = await recorder.finish(ended)
    assert store.run(run.id) == finished
    assert replace(finished, chain="", digest=None, spent=0) == ended
    assert store.events(run.id) == recorder.events
    assert Bodies(store.bodies(run.id))[number] == {"role": "user", "content": "hello"}
    assert [score.value for score in store.scores(run.id)] == [None]
    assert ended.usage == Usage(llm_calls=1, input_tokens=10, output_tokens=5)
    store.close()


def test_runs_of_equal_conditions_share_them_and_others_do_not(store: Store) -> None:
    runs = [
        a_run(started=float(place), condition=condition, metrics={"accuracy": place / 2})
        for place, condition in enumerate(({"a": 1}, {"a": True}, {"a": 1}))
    ]
    for run in runs:
        store.create(run)
    first, other, again = read = list(store.runs())
    assert read == runs == [store.run(run.id) for run in runs]
    assert first.condition is again.condition
    assert other.condition["a"] is True


async def test_steps_that_were_flushed_survive_and_are_known_as_done(store: Store) -> None:
    run = a_run()
    store.create(run)
    recorder = Recorder(Writer(store), run)
    recorder.emit(*some_events()[:3])
    await recorder.flush()
    recorder.emit(PhaseEvent(step="lost", team="data", status="ended", number=0))
    again = Recorder(Writer(store), run, events=store.events(run.id), bodies=store.bodies(run.id))
    assert again.done("charge", "data/0/data_lead/plan/0") == recorder.events[2]
    assert again.done("phase", "lost") is None
    assert again.spent() == 20
    again.emit(PhaseEvent(step="new", team="data", status="ended", number=0))
    await again.flush()
    assert [event.step for event in store.events(run.id)][-1] == "new"
    store.close()


async def test_the_end_of_a_run_is_written_whole_or_not_at_all(store: Store) -> None:
    run = a_run()
    store.create(run)
    recorder = Recorder(Writer(store), run)
    recorder.emit(*some_events())
    store.add(run.id, [(3, some_events()[0])], [])
    with pytest.raises(StoreError):
        await recorder.finish(replace(run, status="completed"))
    assert store.run(run.id).status == "running"
    assert len(store.events(run.id)) == 1
    store.close()


def test_an_unknown_run_is_a_usage_error(store: Store) -> None:
    with pytest.raises(UsageError, match="no run 'nope'"):
        store.run("nope")
    store.close()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "sqlite:////proc/nowhere/runs.db", "oracle99://x", "postgresql+nodriver://localhost/x"]
)
def test_a_store_that_cannot_be_opened_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError):
        Store(url)


def test_reading_a_store_that_is_not_there_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist yet"):
        Store(f"sqlite:///{tmp_path}/none.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_a_folder_of_any_name_is_the_one_that_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "50% a?b #1 ä"
    folder.mkdir()
    url = sa.URL.create("sqlite", database=f"{folder}/runs.db").render_as_string()
    with Store(url) as written, Store(url, must_exist=True) as read:
        written.create(fresh_run())
        assert len(list(read.runs())) == 0
        assert read.sqlite_path == f"{folder}/runs.db"
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    named, _ = store_and_runs((f"{folder}/runs.db",))
    for name in (named, f"{folder}/runs.db"):
        with Store(name, read_only=True) as shown:
            assert shown.sqlite_path == f"{folder}/runs.db"


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/runs.db").close()
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()
    with pytest.raises(UsageError, match=r"version 9999.*newer labmates"):
        Store(f"sqlite:///{tmp_path}/runs.db")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("this is no database, but long enough to be mistaken for one" * 30)
    with pytest.raises(UsageError, match="can't open"):
        Store(f"sqlite:///{tmp_path}/runs.db")


def test_the_json_of_a_run_has_the_documented_keys(store: Store) -> None:
    run = a_run(budget={"total": "0.5", "spent": "0", "remaining": "0.5"})
    score = some_events()[3]
    assert isinstance(score, ScoreEvent)
    data = run_json(run, [score])
    assert list(data) == [
        "id", "kind", "study", "condition", "key", "replicate", "seed", "status", "error", "metrics", "scores",
        "sandbox", "valid", "invalid", "usage", "bill", "budget", "seconds", "models", "digest",
    ]  # fmt: skip
    assert data["scores"] == [{"judge": "verified", "metric": "accuracy", "value": None, "reason": "no block"}]
    assert set(data["usage"]) == {
        "llm_calls", "input_tokens", "output_tokens", "reasoning_tokens", "tool_calls", "failed_replies",
        "cached_tokens", "cache_write_tokens", "uncertain_attempts", "uncertain",
    }  # fmt: skip
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "mysql+pymysql://user:hunter2@localhost/db",
        "postgres://user:hunter2@localhost/db",
        "postgresql+asyncpg://user:hunter2@localhost/db",
        "postgresql://user:hunter2@localhost:port/db",
        "postgresql://user:a/b:hunter2@x@localhost:port/db",
        "user:hunter2@localhost/db",
    ],
)
def test_a_password_in_the_url_is_never_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("runs", "runs.db"),
        ("runs@here", "sqlite:///labmates.db"),
        ("postgres://h/x", "postgresql://"),
    ],
)
def test_a_wrong_url_is_told_what_was_probably_meant(url: str, advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        Store(url)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:runs?mode=memory&uri=true"])
def test_a_store_that_would_be_gone_at_the_end_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="in memory"):
        Store(url)


@pytest.mark.parametrize("table", ["bookmarks", "alembic_version"])
def test_a_database_of_another_program_is_left_alone(tmp_path: Path, table: str) -> None:
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"create table {table} (version_num text)")
        connection.execute(f"insert into {table} values ('ae1027a6acf')")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(UsageError, match=f"belongs to another program: it has {table}"):
            Store(f"sqlite:///{file}", read_only=read_only)
    with sqlite3.connect(file) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [(table,)]
    connection.close()


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Store(f"sqlite:///{tmp_path}/runs.db").close()
    finally:
        os.umask(before)
    assert (tmp_path / "runs.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "with a write-ahead log"])
def test_a_store_on_a_read_only_mount_is_read_and_not_written(tmp_path: Path, closed: bool) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    url = f"sqlite:///{folder}/runs.db"
    try:
        store = Store(url)
        run = a_run()
        store.create(run)
        (tmp_path / "whole").mkdir()
        if closed:
            store.close()
        shutil.copytree(folder, tmp_path / "whole", dirs_exist_ok=True)  # as a copy of a store in use leaves it
        store.close()
        shutil.copytree(tmp_path / "whole", folder, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        with Store(url, must_exist=True) as reader:
            assert reader.run(run.id) == run
            with pytest.raises(StoreError, match="readonly database"):
                reader.create(a_run())
        with Store(url, read_only=True) as reader:
            assert [found.id for found in reader.runs()] == [run.id]
        with pytest.raises(UsageError, match="read-only file system"):
            Store(url)
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.needs("postgres")
def test_a_starting_postgresql_server_is_waited_for_and_a_wrong_address_is_not() -> None:
    from tests.support.postgres import database, starting_server

    with (
        database() as url,
        starting_server(2 * _OPENING_SECONDS) as starting,
        Store(f"{starting}/{url.rpartition('/')[2]}") as store,
    ):
        run = a_run()
        store.create(run)
        assert store.run(run.id) == run
    with pytest.raises(UsageError, match="can't open the store"):
        Store("postgresql://127.0.0.1:1/labmates")
