"""What somebody changes in a store who can write its file is found: by its digests, or by a replay."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from labmates.judges.panel import make_panel
from labmates.models.options import ModelOptions
from labmates.records import schema
from labmates.records.digests import NOT_SEALED, SEALED
from labmates.records.rows import sealed
from labmates.records.store import Store
from labmates.studies.audit import audit, begun_runs
from labmates.studies.judging import judge_runs
from labmates.studies.replay import replay
from tests.support.recorded import Recorded, copy_of, other_kinds
from tests.support.tampering import LEFT_OUT, TABLES, edited

EDITS = 200
MADE_UP = ("plugin", "long")
"""Runs of the recorded store that nobody executed."""


@pytest.fixture(scope="module")
def store(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A copy of the recorded store, in which the lab's run was judged once more."""
    with copy_of(recorded, tmp_path_factory.mktemp("edited")) as store:
        with store.engine.begin() as connection:
            connection.execute(sa.delete(schema.runs).where(schema.runs.c.id.in_([recorded.ids[n] for n in MADE_UP])))
        run, panel = store.run(recorded.ids["science"]), make_panel(["heuristic", "scripted:referee"])
        with ThreadPoolExecutor(1) as pool:
            [done] = pool.submit(asyncio.run, judge_runs(store, [run], panel, ModelOptions(), again=True)).result()
        assert done.error is None
        yield store


def faults(store: Store, *runs: str) -> list[str]:
    there = [run for run in runs or begun_runs(store) if run in begun_runs(store)]
    return [fault.text for _, found in audit(store, there) for fault in found]


async def found_by(store: Store, *runs: str) -> str | None:
    """Return what finds that something is wrong with runs; None if nothing does."""
    if faults(store, *runs):
        return "check"
    for run in (store.run(run_id) for run_id in runs if run_id in begun_runs(store)):
        if not (await replay(store, run)).is_same:
            return "replay"
    return None


async def test_nothing_is_found_in_what_labmates_wrote(store: Store) -> None:
    assert faults(store) == []
    for run in store.runs():
        assert (await replay(store, run)).follows


async def test_every_single_row_that_was_edited_is_found(store: Store) -> None:
    draw = random.Random(20261123)
    away, by = [], Counter[str | None]()
    with sqlite3.connect(str(store.sqlite_path)) as connection:
        for _ in range(EDITS):
            with edited(connection, draw) as edit:
                how = await found_by(store, *edit.runs)
                by[how] += 1
                if how is None:
                    away.append(edit.what)
    connection.close()
    assert away == []
    assert by.total() == EDITS
    assert faults(store) == []  # each was put back


def test_every_column_is_covered_or_left_out_for_a_reason() -> None:
    columns = {column.name for column in schema.runs.c}
    assert set(SEALED) | set(NOT_SEALED) == columns
    assert not set(SEALED) & set(NOT_SEALED)
    left_out = {name.partition(".")[2] for name in LEFT_OUT if "." in name}
    assert left_out == set(NOT_SEALED) - {"chain", "digest", "spent"}  # these three are edited too
    assert {table.name for table in schema.metadata.sorted_tables} == {*TABLES, *(n for n in LEFT_OUT if "." not in n)}


@pytest.mark.parametrize(
    ("name", "changes", "field"),
    [
        ("game", {"metrics": "level"}, "metrics.level"),
        ("science", {"metrics": "accuracy"}, "metrics.accuracy"),
        ("contract", {"usage": {"input_tokens": 1}}, "usage.input_tokens"),
        ("tournament", {"status": "exhausted"}, "status"),
        ("repetition", {"invalid": "nobody likes it"}, "invalid"),
        ("game", {"models": ["scripted:random", "openai:gpt"]}, "models"),
        ("science", {"budget": {"total": "1", "spent": "0.5", "remaining": "0.5"}}, "budget"),
        *((name, kind.forged, kind.field) for name, kind in other_kinds().items()),
    ],
)
async def test_numbers_that_were_edited_with_their_digest_are_found_by_a_replay(
    recorded: Recorded, store: Store, name: str, changes: Any, field: str
) -> None:
    run = store.run(recorded.ids[name])
    values: dict[str, Any] = dict(changes)
    if metric := changes.get("metrics"):
        values["metrics"] = {**run.metrics, metric: 0.99}
    if count := changes.get("usage"):
        values["usage"] = replace(run.usage, **count)
    forged = sealed(replace(run, **values))
    assert forged.digest != run.digest
    [difference] = (await replay(store, forged)).differences
    assert difference.field == field
