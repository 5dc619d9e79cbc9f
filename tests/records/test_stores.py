"""What holds for a store in SQLite and for one in PostgreSQL alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import migrations, schema
from labmates.records.bodies import Bodies
from labmates.records.claims import Claims
from labmates.records.events import ErrorEvent, ScoreEvent, WarningEvent
from labmates.records.migrations import upgrade_store
from labmates.records.recorder import Recorder
from labmates.records.run import RunRecord, new_run_id
from labmates.records.steps import Writer
from labmates.records.store import Store
from labmates.records.studies import study_records
from labmates.studies.audit import unproven
from labmates.util.process_ids import this_worker
from tests.support.recorded import add
from tests.support.steps import append

NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0012", "0011"


def upgrade():
    op.add_column("runs", sa.Column("colour", sa.Text))
    for run in op.get_bind().execute(sa.text("select id from runs")).scalars().all():
        op.get_bind().execute(sa.text("update runs set colour = 'blue' where id = :run"), {"run": run})
"""
"""A migration as a later version of labmates would have."""


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    yield store
    store.close()


async def test_texts_of_every_kind_come_back(store: Store) -> None:
    run = Claims(store, this_worker()).new(RunRecord(new_run_id(), "science", "k", 0, 0, {}, ["m"]))
    recorder = Recorder(Writer(store), run)
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
        append(store, run, list(enumerate(said)), [])
    found = store.score_values([run.id for run in runs])
    assert [found[run.id] for run in runs] == [{("a", "x"): 0.0}, {("a", "x"): 0.5}, {}]


def test_a_store_that_is_too_old_is_refused_with_the_commit_that_upgrades_it(store_url: str) -> None:
    _set_version(store_url, "0008")
    for open_ in (Store, upgrade_store):
        with pytest.raises(UsageError, match=rf"version 0008.*store upgrade.*at commit {schema.UPGRADES_OLDER}"):
            open_(store_url)


def test_an_older_store_is_refused_until_it_is_upgraded_and_keeps_its_runs(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_version(store_url, schema.VERSION)
    folder = shutil.copytree(Path(migrations.__file__).parent, tmp_path / "migrations")
    (folder / "versions" / "0012_colour.py").write_text(NEXT)
    monkeypatch.setattr(migrations, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(schema, "VERSION", "0012")
    with pytest.raises(UsageError, match=r"version 0011.*labmates store upgrade"):
        Store(store_url)
    assert upgrade_store(store_url) == ("0011", "0012")
    assert upgrade_store(store_url) == ("0012", "0012")
    with Store(store_url) as store:
        [run] = store.runs()
        colours = store.read(lambda reading: reading.execute(sa.text("select id, colour from runs")).all())
        assert [tuple(row) for row in colours] == [(run.id, "blue")]
        assert list(unproven(store, run.id)) == []


def test_a_store_of_before_has_the_names_and_columns_of_now_after_the_upgrade(store_url: str) -> None:
    concurrency = {"runs": 3, "calls": 4, "sandboxes": None, "processes": 2}
    plan = {"name": "s", "kind": "game", "grid": {"game": ["o-ring"]}, "concurrency": concurrency}
    with Store(store_url) as store:
        row = {"name": "s", "spec": plan, "cap": None, "created": 0.0}
        store.write(lambda connection: connection.execute(sa.insert(schema.studies), row))
    _set_version(store_url, "0009")
    upgrade_store(store_url)
    with Store(store_url) as store:
        assert (store.run("one").made, list(unproven(store, "one"))) == (None, [])
        [study] = study_records(store)
        assert study.spec == plan | {
            "concurrency": {"max_concurrent_runs": 3, "max_concurrent_calls": 4, "max_sandboxes": None, "workers": 2}
        }


def test_a_store_of_a_newer_labmates_is_neither_opened_nor_upgraded(store_url: str) -> None:
    _set_version(store_url, "9999")
    for open_ in (Store, upgrade_store):
        with pytest.raises(UsageError, match=r"version 9999.*newer labmates"):
            open_(store_url)


def test_what_is_no_store_can_not_be_upgraded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist yet"):
        upgrade_store(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_made_once_when_many_open_it_at_the_same_time(store_url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(Store, [store_url] * 8))
    assert [list(store.runs()) for store in stores] == [[]] * 8
    for store in stores:
        store.close()


def _set_version(url: str, version: str) -> None:
    """Make a store of a run and give it a version."""
    with Store(url) as store:
        add(store, "science", [WarningEvent(text="slow")], Bodies(), id="one", key="one")
        number = sa.update(schema.version).values(version_num=version)
        store.write(lambda connection: connection.execute(number))
        if version < "0011":
            store.write(lambda connection: connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN made"))
