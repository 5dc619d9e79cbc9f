"""The audit finds each way in which a store can be out of balance, and nothing in one that labmates wrote."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from labmates.api import arun
from labmates.errors import LabmatesError
from labmates.records import schema
from labmates.records.digests import Chain, stored_digests
from labmates.records.events import ChargeEvent, ScoreEvent
from labmates.records.store import Store
from labmates.studies.audit import audit, begun_runs, overspent
from labmates.studies.replay import replay
from tests.studies.ended import ended_run

EVENTS, BODIES, RUNS = schema.events, schema.bodies, schema.runs


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    yield store
    store.close()


def faults(store: Store) -> list[str]:
    return [fault.text for _, found in audit(store, begun_runs(store)) for fault in found]


async def a_run(store: Store) -> str:
    [run] = await arun(
        "science",
        store=store.url,
        settings={"sandbox": "unsafe-local"},
        task="anomaly",
        difficulty="easy",
        model="scripted:silent",
        solo=True,
    )
    return run.id


def change(store: Store, *statements: sa.Executable) -> None:
    with store.engine.begin() as connection:
        for statement in statements:
            connection.execute(statement)


def charge() -> sa.Select[tuple[int]]:
    """Select the number of the first charge."""
    return sa.select(sa.func.min(EVENTS.c.seq)).where(EVENTS.c.type == "charge")


async def test_what_labmates_wrote_passes(store: Store) -> None:
    await a_run(store)
    assert faults(store) == []


async def test_a_text_that_cannot_be_unpacked_is_named_whatever_its_chain_says(store: Store) -> None:
    run = await a_run(store)
    damaged = {BODIES.c.data: b"no zlib"}
    change(store, sa.update(BODIES).where(BODIES.c.run == run, BODIES.c.number == 2).values(damaged))
    bodies = list(store.bodies(run))
    rows = store.read(
        lambda connection: [
            row._asdict()
            for row in connection.execute(sa.select(EVENTS).where(EVENTS.c.run == run).order_by(EVENTS.c.seq))
        ]
    )
    chain = str(Chain().longer(rows, stored_digests(bodies)))
    change(store, sa.update(RUNS).where(RUNS.c.id == run).values(chain=chain))
    [*_, fault] = [fault for fault in faults(store) if "digest" not in fault]
    assert fault.startswith("its text or file 2 can't be read")
    with pytest.raises(LabmatesError, match="its text or file 2 can't be read"):
        await replay(store, store.run(run))


async def test_a_step_that_was_charged_twice_is_found(store: Store) -> None:
    await a_run(store)
    copied = [EVENTS.c[name] for name in ("run", "type", "at", "step", "team", "agent", "data")]
    last = sa.select(sa.func.max(EVENTS.c.seq) + 1).scalar_subquery()
    rows = sa.select(*copied, last).where(EVENTS.c.seq == charge().scalar_subquery())
    change(store, sa.insert(EVENTS).from_select([*copied, EVENTS.c.seq], rows))
    chain, twice, cost, spent = faults(store)
    assert chain == "it has 1 events that its hash chain does not cover"
    assert "the charge of the step" in twice
    assert "occurs in it 2 times" in twice
    assert "its study takes it to have cost" in cost
    assert "it says that it spent" in spent


async def test_a_lost_charge_is_found(store: Store) -> None:
    await a_run(store)
    change(store, sa.delete(EVENTS).where(EVENTS.c.seq == charge().scalar_subquery()))
    found = faults(store)
    assert "events are not those that its hash chain covers" in found[0]
    assert "numbered from 0 to" in found[1]
    assert "model calls were not charged" in found[2]
    assert len(found) == 5


async def test_a_lost_text_is_found(store: Store) -> None:
    await a_run(store)
    change(store, sa.delete(BODIES).where(BODIES.c.number == 1))
    chain, next_one, missing = faults(store)
    assert "its text or file 2 can't be read" in next_one  # it is compressed by the lost one
    assert "texts and files are not those that its hash chain covers" in chain
    assert missing == "texts that its events name are missing: 1"


async def test_more_spent_than_there_was_and_wrong_counts_are_found(store: Store) -> None:
    run = store.run(await a_run(store))
    assert run.budget is not None
    stated = dict.fromkeys(("llm_calls", "tool_calls", "failed_replies"), 99)
    usage = {**schema_usage(store), **stated}
    change(store, sa.update(RUNS).values(budget={**run.budget, "total": "0"}, usage=usage))
    digest, more, *counts = faults(store)
    assert "its row, its metrics or an earlier digest" in digest
    assert "are more than its budget of $0.0000" in more
    for name, text in zip(stated, counts, strict=True):
        assert f"it counts 99 {name}, and its events are {getattr(run.usage, name)}" in text


def schema_usage(store: Store) -> dict[str, int]:
    with store.reading() as connection:
        usage: dict[str, int] = connection.execute(sa.select(RUNS.c.usage)).scalar_one()
    return usage


async def test_a_run_that_stands_in_its_study_twice_is_found(store: Store) -> None:
    first, other = ended_run(store, study="one"), ended_run(store, seed=1, study="one")
    change(store, sa.text("drop index runs_of_study"), sa.update(RUNS).values(replicate=0, key=first.key))
    found = {run: [fault.text for fault in of_run] for run, of_run in audit(store, begun_runs(store))}
    [(run, text)] = [(run, text) for run, texts in found.items() for text in texts if "same replicate" in text]
    assert f"as the run '{first.id if run == other.id else other.id}'" in text


def test_runs_of_another_replicate_condition_or_study_are_no_repeats(store: Store) -> None:
    for study, seed, budget in (("one", 0, 1), ("one", 1, 1), ("one", 0, 2), ("two", 0, 1), (None, 0, 1), (None, 0, 1)):
        ended_run(store, study=study, seed=seed, budget=budget)
    assert not [text for text in faults(store) if "same replicate" in text]


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        ({"status": "running"}, "it has a digest, though it has not ended (running)"),
        ({"digest": None}, "it has no digest, though it has ended (completed)"),
        ({"status": "planned"}, "it has a record, though it says that it was not begun"),
        ({"metrics": {"phases": 5.0}}, "its row, its metrics or an earlier digest differ from its digest"),
    ],
)
def test_a_forged_end_is_found(store: Store, forged: dict[str, object], told: str) -> None:
    ended_run(store)
    change(store, sa.update(RUNS).values(forged))
    assert told in faults(store)


def test_a_score_of_another_run_deleted_events_and_other_orders_are_found(store: Store) -> None:
    scores = [ScoreEvent(judge="j", version="1", metric=name, value=0.5, reason="") for name in ("a", "b")]
    runs = [ended_run(store, seed=seed, more=scores[: 2 - seed]).id for seed in range(2)]
    honest = faults(store)
    last, here = sa.select(sa.func.max(EVENTS.c.seq)).where(EVENTS.c.run == runs[0]).scalar_subquery(), EVENTS.c.run
    edits: list[tuple[list[sa.Executable], str]] = [
        ([sa.update(EVENTS).where(here == runs[0], EVENTS.c.seq == last).values(run=runs[1])], "does not cover"),
        ([sa.delete(EVENTS).where(here == runs[0], EVENTS.c.seq == last)], "its first 4 events are not those that"),
        ([sa.delete(EVENTS).where(here == runs[0], EVENTS.c.seq == 0)], "3 events, which are numbered from 1 to 3"),
        ([sa.update(EVENTS).where(here == runs[0], EVENTS.c.seq == 0).values(seq=-1)], "are numbered from -1 to 3"),
        ([sa.update(EVENTS).where(here == runs[0], EVENTS.c.seq == last).values(seq=9)], "are numbered from 0 to 9"),
        (
            [
                sa.update(EVENTS).where(here == runs[0], EVENTS.c.seq == old).values(seq=new)
                for old, new in ((2, 9), (3, 2), (9, 3))
            ],
            "its first 4 events are not those that",
        ),
    ]
    rows = store.rows(sa.select(EVENTS))
    for statements, told in edits:
        change(store, *statements)
        assert [text for text in faults(store) if told in text and text not in honest], told
        change(store, sa.delete(EVENTS), sa.insert(EVENTS).values([row._asdict() for row in rows]))
    assert faults(store) == honest


def test_an_earlier_digest_that_is_edited_or_gone_is_found(store: Store) -> None:
    run = ended_run(store)
    for value in (5.0, 6.0):
        store.set_metrics(run.id, {"phases": value})
    honest, seals = faults(store), schema.seals
    digest = store.rows(sa.select(seals.c.digest).where(seals.c.number == 0))[0].digest
    for edit, told in (
        (sa.update(seals).where(seals.c.number == 0).values(digest="0" * 64), "an earlier digest differ"),
        (sa.update(seals).where(seals.c.number == 1).values(number=9), "the list of its earlier digests has a gap"),
    ):
        change(store, edit)
        assert [text for text in faults(store) if told in text]
        change(store, sa.update(seals).where(seals.c.number == 0).values(digest=digest))
    assert "the list of its earlier digests has a gap" not in honest


def test_a_run_that_cost_more_than_its_bound_or_than_its_study_counts_is_found(store: Store) -> None:
    charges = [ChargeEvent(step=name, team="a", amount=1_000_000) for name in ("one", "two")]
    ended_run(store, more=charges)
    change(store, sa.update(RUNS).values(most=2_000_000, spent=2_000_000))
    assert not [text for text in faults(store) if "cost" in text]
    budget = {"total": "1.9", "spent": "2", "remaining": "0"}
    change(store, sa.update(RUNS).values(most=1_900_000, spent=1_900_000, budget=budget))
    assert "its charges of $2.0000 are more than its budget of $1.9000" in faults(store)
    cost, bound = [text for text in faults(store) if " cost " in text]
    assert cost.startswith("its study takes it to have cost $1.9000")
    assert bound.endswith("more than its bound of $1.9000")


def test_a_study_beyond_its_cap_by_one_micro_dollar_is_found(store: Store) -> None:
    ended_run(store, study="one")
    change(store, sa.update(RUNS).values(spent=1_000_001))
    for cap, found in ((1_000_001, []), (1_000_000, ["one"])):
        change(store, sa.delete(schema.studies))
        change(store, sa.insert(schema.studies).values(name="one", spec={}, cap=cap, created=0.0))
        assert [name for name, _ in overspent(store)] == found
