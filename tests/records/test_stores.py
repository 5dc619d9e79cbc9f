"""What holds for a store in SQLite and for one in PostgreSQL alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.bodies import Bodies
from labmates.records.claims import Claims
from labmates.records.database import Database
from labmates.records.events import ErrorEvent, ScoreEvent, WarningEvent
from labmates.records.recorder import Recorder
from labmates.records.run import RunRecord, new_run_id
from labmates.records.steps import Writer
from labmates.records.store import Store
from labmates.records.upgrade import upgrade_store
from labmates.studies.audit import is_late, unproven
from labmates.util.process_ids import this_worker

FIRST = """
create table labmates_meta (name varchar(40) not null primary key, value text not null);
create table runs (id varchar(40) not null primary key, kind varchar(40) not null, study varchar(200),
  key varchar(64) not null,
  replicate integer not null, seed bigint not null, status varchar(20) not null, error text, condition json not null,
  settings json not null, models json not null, metrics json not null, usage json not null, budget json,
  sandbox varchar(40), started float not null, seconds float not null,
  version varchar(40) not null);
create index runs_by_key on runs (kind, key, replicate);
create table events (run varchar(40) not null, seq integer not null,
  type varchar(20) not null, at float not null, step text not null, team varchar(80) not null,
  agent varchar(80) not null, data json not null, primary key (run, seq),
  FOREIGN KEY(run) REFERENCES runs (id) ON DELETE CASCADE);
create index events_scores on events (run) where type = 'score';
create table bodies (run varchar(40) not null, number integer not null,
  media varchar(8) not null, data {blob} not null, primary key (run, number),
  FOREIGN KEY(run) REFERENCES runs (id) ON DELETE CASCADE);
insert into labmates_meta values ('schema', '1');
insert into runs values ('r1', 'science', null, 'k', 0, 7, 'completed', null, '{{}}', '{{}}', '["m"]', '{{}}', '{{}}',
  null, null, 1.0, 2.0, '0.1.0');
insert into events values ('r1', 0, 'warning', 1.5, '', '', '', '{{"text": "slow"}}');
insert into bodies values ('r1', 1, 'png', {picture});
"""
"""The tables as the first labmates made them, with a run."""


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    yield store
    store.close()


async def test_texts_of_every_kind_come_back(store: Store) -> None:
    run = Claims(store, this_worker()).new(RunRecord(new_run_id(), "science", "k", 0, 0, {}, ["m"]))
    recorder = Recorder(Writer(store.database), run)
    odd = "NUL \0, half a pair \ud800, control \x1b, and 🌊"
    number = recorder.bodies.keep({"content": odd})
    picture = recorder.bodies.keep(b"\x89PNG\r\n\x1a\n\0\xff")
    recorder.emit(WarningEvent(text=odd), ErrorEvent(text=odd))
    await recorder.finish(replace(run, status="failed", error=odd))
    bodies = Bodies(store.bodies(run.id))
    assert bodies[number] == {"content": odd}
    assert bodies[picture] == b"\x89PNG\r\n\x1a\n\0\xff"
    assert store.events(run.id) == recorder.events


def test_scores_of_many_runs_are_read_at_once_and_the_newest_counts(store: Store) -> None:
    claims = Claims(store, this_worker())
    runs = [claims.new(RunRecord(new_run_id(), "science", "k", n, 0, {}, ["m"])) for n in range(3)]
    for value, run in enumerate(runs[:2]):
        said = [ScoreEvent(judge="a", version="1", metric="x", value=one, reason="") for one in (None, value / 2)]
        store.append(run, list(enumerate(said)), [])
    found = store.score_values([run.id for run in runs])
    assert [found[run.id] for run in runs] == [{("a", "x"): 0.0}, {("a", "x"): 0.5}, {}]


def test_an_older_store_is_refused_until_it_is_upgraded_and_then_like_a_new_one(store_url: str) -> None:
    _make_first(store_url)
    with pytest.raises(UsageError, match=r"version 0001.*labmates store upgrade"):
        Store(store_url)
    seen: list[tuple[int, int]] = []
    assert upgrade_store(store_url, watch=lambda *counts: seen.append(counts)) == ("0001", schema.VERSION)
    assert seen == [(0, 1), (1, 1)]
    assert upgrade_store(store_url) == (schema.VERSION, schema.VERSION)
    store = Store(store_url)
    [run] = store.runs()
    assert (run.id, run.seed, run.attempt) == ("r1", 7, 1)
    assert is_late(run.digest)
    assert list(unproven(store, run.id)) == []
    store.close()
    database = Database(store_url)
    with database.engine.connect() as connection:
        for metadata in (schema.metadata, schema.search_index):
            options = {"compare_type": True, "include_name": _among(metadata)}
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, metadata) == []
    database.close()


def _among(metadata: sa.MetaData) -> Callable[..., bool]:
    """Whether the name of a table, in a comparison of tables, is one of these."""
    return lambda name, kind, _parents: kind != "table" or name in metadata.tables


@pytest.mark.parametrize(
    ("kind", "metrics", "usage", "reason"),
    [
        ("game", {"failed_decision_rate": 1.0}, {}, "100% of its decisions failed"),
        ("dilemma", {"failed_decision_rate": 0.5}, {}, "50% of its decisions failed"),
        ("game", {"failed_decision_rate": 0.2}, {}, None),
        ("tournament", {"failed_decision_rate": 0.5}, {}, None),
        ("science", {}, {"llm_calls": 9, "failed_replies": 9}, "no reply could be used, of 9"),
        ("science", {}, {"llm_calls": 9, "failed_replies": 8}, None),
    ],
)
def test_the_runs_of_an_older_store_are_judged_by_what_their_rows_count(
    store_url: str, kind: str, metrics: dict[str, float], usage: dict[str, int], reason: str | None
) -> None:
    _make_first(store_url)
    old = Database(store_url, any_version=True)
    values = {"kind": kind, "metrics": metrics, "usage": usage}
    old.write(lambda connection: connection.execute(sa.update(schema.runs).values(values)))
    old.close()
    upgrade_store(store_url)
    store = Store(store_url)
    [run] = store.runs()
    store.close()
    assert run.valid == (reason is None)
    assert run.invalid is None if reason is None else run.invalid is not None and reason in run.invalid


def test_a_store_of_a_newer_labmates_is_neither_opened_nor_upgraded(store_url: str) -> None:
    store = Store(store_url)
    newer = sa.update(schema.version).values(version_num="9999")
    store.database.write(lambda connection: connection.execute(newer))
    store.close()
    for open_ in (Store, upgrade_store):
        with pytest.raises(UsageError, match=r"version 9999.*newer labmates"):
            open_(store_url)


def test_what_is_no_store_can_not_be_upgraded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't open"):
        upgrade_store(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_made_once_when_many_open_it_at_the_same_time(store_url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(Store, [store_url] * 8))
    assert [list(store.runs()) for store in stores] == [[]] * 8
    for store in stores:
        store.close()


def _make_first(url: str) -> None:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.executescript(FIRST.format(blob="blob", picture="x'89'"))
        connection.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as connected:
        connected.execute(FIRST.format(blob="bytea", picture="'\\x89'").encode())
