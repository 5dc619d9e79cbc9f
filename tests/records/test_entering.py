"""Large studies are entered batch by batch, and completed where that was cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import entering, schema
from labmates.records.entering import Cell, Planned, enter_study
from labmates.records.listing import Chosen, run_page
from labmates.records.run import RunRecord, new_run_id
from labmates.records.store import Store
from labmates.records.studies import StudyRecord, study_counts

TEMPLATE = RunRecord("", "game", "", 0, 0, {}, [], "planned", study="s", settings={"cache": True})
RUNS = schema.runs


@pytest.fixture
def store(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(entering, "_BATCH", 40)
    store = Store(store_url)
    yield store
    store.close()


def enter(store: Store, keys: str = "abcde", replicates: int = 20, **options: Any) -> tuple[int, int]:
    plan = {"keys": keys, "replicates": replicates}
    wanted = [
        Planned(Cell(key, 7, '["m"]', f'{{"key": "{key}"}}'), replicate, replicate, replicate * len(keys) + number)
        for number, key in enumerate(keys)
        for replicate in range(replicates)
    ]

    def wants(key: str, replicate: int) -> bool:
        return key in keys and replicate < replicates

    return enter_study(store, StudyRecord("s", plan, None, 0.0), TEMPLATE, wanted, wants, seed=0, **options)


def queue(store: Store) -> list[tuple[str, int]]:
    query = sa.select(RUNS.c.key, RUNS.c.replicate).order_by(RUNS.c.place)
    return [(row.key, row.replicate) for row in store.read(lambda connection: connection.execute(query).all())]


def at(number: int, do: Callable[[], object]) -> Callable[[int], None]:
    """Return what does something once so many runs were looked at."""

    def watch(now: int) -> None:
        if now == number:
            do()

    return watch


def test_an_entry_that_was_killed_is_completed_by_the_same_call(store: Store) -> None:
    def kill() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        enter(store, watch=at(80, kill))
    assert study_counts(store, "s").runs == {"planned": 80}
    assert enter(store) == (100, 20)
    assert enter(store) == (100, 0)
    assert queue(store) == [(key, replicate) for replicate in range(20) for key in "abcde"]
    run = next(iter(run_page(store, Chosen(study="s"), size=1)), None)
    assert run is not None
    assert (run.condition, run.models, run.settings) == ({"key": run.key}, ["m"], {"cache": True})


def test_a_study_that_shrinks_and_grows_keeps_what_was_begun_and_its_order(store: Store) -> None:
    enter(store)
    begun = sa.update(RUNS).where(RUNS.c.key == "e", RUNS.c.replicate < 3).values(status="completed")
    store.write(lambda connection: connection.execute(begun))
    assert enter(store, "axb", 2) == (6, 2)
    assert set(queue(store)) == {(key, replicate) for key in "axb" for replicate in range(2)} | {
        ("e", r) for r in range(3)
    }
    waiting = sa.select(RUNS.c.key).where(RUNS.c.status == "planned").order_by(RUNS.c.place)
    with store.reading() as connection:
        assert "".join(connection.execute(waiting).scalars()) == "axbaxb"


def test_a_plan_that_another_command_changes_meanwhile_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="was changed or deleted by another command"):
        enter(store, watch=at(40, lambda: enter(store, "ab")))
    assert study_counts(store, "s").total == 40
    assert enter(store, "ab") == (40, 0)
    assert set(queue(store)) == {(key, replicate) for key in "ab" for replicate in range(20)}


def test_another_seed_is_refused_before_anything_is_written(store: Store) -> None:
    enter(store)
    begun = sa.update(RUNS).where(RUNS.c.key == "c").values(status="running", seed=RUNS.c.seed + 5)
    store.write(lambda connection: connection.execute(begun))
    for wanted in ("abcdef", "ab"):  # also if the begun runs are wanted no longer
        with pytest.raises(UsageError, match=r"begun with other seeds \(replicate \d+ with \d+, not \d+\)"):
            enter(store, wanted)
    assert study_counts(store, "s").total == 100


def test_runs_whose_random_ids_meet_are_all_entered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["same", "same", *("again" for _ in range(39))])
    monkeypatch.setattr(entering, "new_run_id", lambda: next(ids, None) or new_run_id())
    assert enter(store) == (100, 100)
    assert len(set(queue(store))) == 100
