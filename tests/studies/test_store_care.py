"""Copies and deletions of stores of real runs, in SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.claims import Claims
from labmates.records.copying import copy_store
from labmates.records.database import Database
from labmates.records.listing import Chosen
from labmates.records.pruning import prune
from labmates.records.store import Store
from labmates.records.studies import Amount, study_counts
from labmates.studies.audit import audit, begun_runs
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import enter, stored_spec, work_on
from labmates.util.bounded_yaml import Source
from labmates.util.process_ids import this_worker

DATA: dict[str, Any] = {
    "name": "s",
    "kind": "game",
    "models": ["scripted:random"],
    "fixed": {"rounds": 2},
    "grid": {"game": ["public-goods", "weakest-link"]},
    "replicates": 2,
}


def study(**changes: Any) -> StudySpec:
    return read_spec(Source("s.yaml", {**DATA, **changes}, {}))


@pytest.fixture
def lite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/lite.db"


async def played(url: str, runs: int | None = None, **changes: Any) -> None:
    """Enter a study into a store and execute some of its runs."""
    spec = study(**changes)
    with Store(url) as store:
        enter(store, spec)
        if runs is None:
            await work_on(store, spec)
            return
        for run in Claims(store, this_worker()).next(spec.name, runs, attempts=5):
            Claims(store, this_worker()).give_back([run])


def rows(url: str) -> dict[str, list[Any]]:
    """Return all that a store holds, JSON as its text."""
    with Database(url) as database, database.reading() as connection:
        rows = {}
        for table in schema.metadata.sorted_tables:
            columns = (sa.cast(each, sa.Text) if isinstance(each.type, sa.JSON) else each for each in table.c)
            rows[table.name] = list(connection.execute(sa.select(*columns).order_by(*table.primary_key)))
        return rows


def faults(url: str) -> list[str]:
    with Store(url) as store:
        return [fault.text for _, found in audit(store, begun_runs(store)) for fault in found]


async def test_a_copy_holds_every_row_as_it_was_also_there_and_back(store_url: str, lite: str, tmp_path: Path) -> None:
    await played(lite)
    assert copy_store(lite, store_url).runs == 4
    back = f"sqlite:///{tmp_path}/back.db"
    copy_store(store_url, back)
    assert rows(store_url) == rows(back) == rows(lite)


async def test_a_copy_that_was_cut_off_leaves_nothing_and_another_store_is_not_written_over(
    lite: str, tmp_path: Path
) -> None:
    await played(lite, 0, replicates=110)
    target = f"sqlite:///{tmp_path}/copy.db"

    def stop(done: int, total: int) -> None:
        assert (done, total) == (200, 220)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(lite, target, watch=stop)
    assert not rows(target)["runs"]
    assert copy_store(lite, target).runs == 220
    assert rows(target) == rows(lite)
    other = f"sqlite:///{tmp_path}/other.db"
    await played(other, 0)
    before = rows(other)
    with pytest.raises(UsageError, match=r"is not empty.*copy into a new store"):
        copy_store(lite, other)
    assert rows(other) == before


async def test_a_run_that_goes_on_is_interrupted_in_a_copy_and_can_be_continued_there(
    store_url: str, tmp_path: Path
) -> None:
    with Store(store_url) as store:
        enter(store, study())
        [held] = Claims(store, this_worker()).next("s", 1, attempts=5)
        copy = f"sqlite:///{tmp_path}/copy.db"
        copy_store(store_url, copy, runs=[held.id])
        assert store.run(held.id).status == "running"
    with Store(copy) as store:
        assert store.run(held.id) == replace(held, status="interrupted", error="interrupted", worker=None)
        assert await work_on(store, stored_spec(store, "s")) == 1
    assert not faults(copy)


def test_a_copy_in_sqlite_is_one_file_that_any_program_reads(lite: str, tmp_path: Path) -> None:
    Store(lite).close()
    folder = tmp_path / "media"
    folder.mkdir()
    copy_store(lite, f"sqlite:///{folder}/a.db")
    folder.chmod(0o500)
    with closing(sqlite3.connect(f"file:{folder}/a.db?mode=ro", uri=True)) as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("delete",)
        assert connection.execute("select count(*) from runs").fetchone() == (0,)
    assert [path.name for path in folder.iterdir()] == ["a.db"]
    folder.chmod(0o700)


async def test_what_is_deleted_is_gone_with_all_of_it_but_not_while_a_worker_holds_it(store_url: str) -> None:
    await played(store_url)
    with Store(store_url) as store:
        enter(store, study(replicates=3))
        [held] = Claims(store, this_worker()).next("s", 1, attempts=5)
        whole = Chosen(study="s")
        for dry_run in (True, False):
            with pytest.raises(UsageError, match=f"run {held.id} is running in"):
                prune(store, whole, replies=False, dry_run=dry_run)
        ended = Chosen(study="s", status="completed")
        assert prune(store, ended, replies=True, dry_run=True) == Amount(4)
        assert prune(store, ended, replies=False) == Amount(4)
        assert study_counts(store, "s").runs == {"running": 1, "planned": 1}
        Claims(store, this_worker()).give_back([held])
        assert prune(store, whole, replies=True) == Amount(2, 1)
    left = {name: len(of_table) for name, of_table in rows(store_url).items()}
    assert {name for name, number in left.items() if number} == {"alembic_version"}
