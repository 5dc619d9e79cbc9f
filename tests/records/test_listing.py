"""Lists of runs by the page: every run once, whatever they are sorted by."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from labmates.errors import UsageError
from labmates.records.listing import SORTS, Chosen, facets, run_count, run_page
from labmates.records.run import RunRecord
from labmates.records.store import Store
from tests.support.recorded import a_record

KINDS, STUDIES, STATUSES = ("game", "science"), (None, "small", "large"), ("completed", "failed", "running")


def some_runs(number: int) -> list[RunRecord]:
    rng = random.Random(3)
    return [
        replace(
            a_record(),
            id=f"{rng.getrandbits(40):010x}",
            kind=rng.choice(KINDS),
            study=rng.choice(STUDIES),
            key=str(at),
            status=rng.choice(STATUSES),  # type: ignore[arg-type]
            started=float(rng.randrange(5)),  # many at the same time
            seconds=rng.choice([0.5, 1.25]),
            models=[f"scripted:{rng.choice('ab')}"],
            condition={"task": "naïve" if at == 3 else "ecology"},
            error="100% off_it" if at == 4 else None,
        )
        for at in range(number)
    ]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    made = Store(store_url)
    for run in some_runs(40):
        made.create(run)
    yield made
    made.close()


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("sort", SORTS)
def test_pages_hold_every_run_once_in_order(store: Store, sort: str, descending: bool) -> None:
    runs = {run.id: run for run in some_runs(40)}
    pages = [run_page(store, Chosen(), sort=sort, descending=descending, page=page, size=7) for page in range(1, 8)]
    seen = [run.id for page in pages for run in page]
    assert [len(page) for page in pages] == [7, 7, 7, 7, 7, 5, 0]

    def key(run_id: str) -> tuple[object, str]:
        value = 0 if sort == "spent" else getattr(runs[run_id], sort)
        return ("" if value is None else value), run_id

    assert seen == sorted(runs, key=key, reverse=descending)
    assert [run.id for run in run_page(store, Chosen(), sort=sort, descending=descending, size=None)] == seen


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (Chosen(kind="game"), lambda run: run.kind == "game"),
        (Chosen(study="small", status="failed"), lambda run: run.study == "small" and run.status == "failed"),
        (Chosen(model="scripted:a"), lambda run: run.models == ["scripted:a"]),
        (Chosen(text="naïve"), lambda run: run.condition["task"] == "naïve"),
        (Chosen(text="100% off_"), lambda run: run.error is not None),
        (Chosen(text="1_0"), lambda run: False),
        (Chosen(kind="nothing"), lambda run: False),
    ],
)
def test_filters_choose_the_runs_that_are_so(store: Store, chosen: Chosen, wanted: object) -> None:
    assert callable(wanted)
    found = run_page(store, chosen, size=100)
    assert {run.id for run in found} == {run.id for run in some_runs(40) if wanted(run)}
    assert run_count(store, chosen) == len(found)


def test_facets_count_all_runs(store: Store) -> None:
    runs, found = some_runs(40), facets(store)
    assert found.total == 40
    assert found.kinds == {kind: sum(run.kind == kind for run in runs) for kind in KINDS}
    assert found.studies["small"]["failed"] == sum(run.study == "small" and run.status == "failed" for run in runs)


def test_what_is_no_order_or_status_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="unknown order 'height'"):
        run_page(store, Chosen(), sort="height")
    with pytest.raises(UsageError, match="unknown status 'done'"):
        run_page(store, Chosen(status="done"))


def test_a_store_that_is_only_read_can_not_be_written(store: Store, store_url: str) -> None:
    reader = Store(store_url, read_only=True)
    before = facets(reader).total
    with pytest.raises(Exception, match=r"read-?only"):
        reader.create(a_record())
    store.create(a_record(key="new"))
    assert facets(reader).total == before + 1
    reader.close()
